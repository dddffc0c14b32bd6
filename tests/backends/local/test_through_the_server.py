"""A real model behind the whole server: every prompt is the stored ids plus only the new ones."""

import pytest

from sessions_app.rendering.factory import load_tokenizer
from tests.client import Client, reply_of, user
from tests.harness import running_server

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.mark.parametrize("policy", ["tree", "rollback", "linear"])
def test_a_conversation_feeds_the_sampled_ids_back(tiny_model, tmp_path, policy):
    settings = {
        "TITO_HOME": str(tmp_path),
        "TITO_BACKEND": "local",
        "TITO_MODEL": str(tiny_model),
        "TITO_RENDERER": "template",
        "TITO_ON_TRUNCATED": "close",
    }
    with running_server(settings) as url:
        client = Client(url)
        session = client.create(history_policy=policy)
        messages = [user("Hello")]
        for turn in range(3):
            answer = client.chat(session, messages, max_tokens=10, seed=turn, timeout=120)
            messages += [reply_of(answer), user(f"and {turn}?")]
        records = client.get(session)["records"]
        tokens = client.tokens(session)
    prompts = [record["request"]["input_ids"] for record in records]
    assert len(prompts) == 3
    for earlier, later in zip(prompts, [*prompts[1:], tokens], strict=True):
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)
    tokenizer = load_tokenizer(str(tiny_model))
    assert tokenizer.encode(tokenizer.decode(tokens)).tolist() != tokens
