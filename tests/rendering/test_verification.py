"""The table of invariants: good templates pass, each defect is found and shown."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.families.facts import FAMILIES
from sessions_app.rendering.family_renderer import FamilyRenderer
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.token_diff import on_lines, token_diff
from sessions_app.rendering.verification import Check, failed, verify
from tests.rendering.support import HISTORY, byte_tokenizer, family, healing_renderer, plain

BYTES = str(HISTORY / "config/tokenizer")
CHATML = HISTORY / "config/chatml.jinja"
MOVES_TOOLS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if loop.last and tools %}{{ tools | tojson }}{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LAST_THINKS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
COUNTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ ' ' ~ loop.index if m.role == 'user' }}\n"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def found(renderer: Renderer) -> dict[str, Check]:
    return {f"{check.area} {check.name}": check for check in verify(renderer)}


@pytest.mark.parametrize("name", ["plain", "nl_glue", "asym_close"])
def test_an_append_only_template_passes_everything(name: str) -> None:
    checks = verify(healing_renderer(name))
    assert {check.verdict for check in checks} == {"ok"}
    assert not failed(checks)


def test_a_template_that_drops_reasoning_is_warned_about() -> None:
    check = found(healing_renderer("strip_think"))["seam reasoning, then user"]
    assert check.verdict == "warn"
    assert "served tokens stay" in check.detail


def test_a_template_without_closes_passes_but_for_the_roles_it_lacks() -> None:
    checks = found(healing_renderer("role_delim"))
    assert not failed(tuple(checks.values()))
    assert checks["role system"] == Check("role", "system", "warn", "cannot follow a generated turn")


def test_a_family_that_loses_the_newline_fails_with_the_place() -> None:
    check = found(family("default"))["seam text, then user"]
    assert check.verdict == "fail"
    assert "after" in check.detail
    assert "258'<|im_end|>': fed 257'<|im_start|>'" in check.detail
    assert "fresh render 10'\\n' 257'<|im_start|>'" in check.detail


def test_a_family_with_the_right_rule_passes() -> None:
    seams = [check for check in verify(family("qwen3")) if check.area == "seam"]
    assert not failed(seams)


def test_a_family_whose_template_rewrites_the_last_turn_fails() -> None:
    """A family's delta is a difference of two renders: there is none, so every second turn is refused."""
    parser = reply_parser("none", "think", byte_tokenizer())
    renderer = FamilyRenderer(byte_tokenizer(), ChatTemplate(LAST_THINKS), parser, {}, FAMILIES["default"])
    check = found(renderer)["seam text, then user"]
    assert check.verdict == "fail"
    assert "refused, though the template renders it: rendered suffix diff failed" in check.detail


def test_tools_that_move_to_the_last_message_fail() -> None:
    check = found(plain(MOVES_TOOLS, byte_tokenizer()))["seam text, then user, with tools"]
    assert check.verdict == "fail"


def test_a_text_that_depends_on_the_place_in_the_history_is_found_out() -> None:
    checks = found(plain(COUNTS, byte_tokenizer()))
    assert checks["seam text, then user"].verdict == "ok"
    assert checks["seam text, then user, late in a session"].verdict == "fail"


def test_a_parser_that_does_not_fit_the_template_fails() -> None:
    check = found(family("qwen3"))["parse call"]
    assert check.verdict == "fail"
    assert "malformed" in check.detail or "read back as" in check.detail


def test_a_template_that_prints_no_calls_has_nothing_to_check() -> None:
    assert found(plain(COUNTS, byte_tokenizer()))["seam call, then result"].verdict == "none"


def test_a_template_that_refuses_is_quoted() -> None:
    refusing = "{{ raise_exception('never') }}"
    checks = found(plain(refusing, byte_tokenizer()))
    assert checks["seam text, then user"].detail == "the template refuses it: never"
    assert checks["role user"].verdict == "fail"


def test_a_difference_is_shown_with_its_place() -> None:
    def names(ids: object) -> str:
        return "".join(chr(number) for number in ids)  # type: ignore[attr-defined]

    shown = token_diff([97, 98, 99], [97, 98, 100, 101], names)
    assert shown == "at token 2 after 97'a' 98'b': fed 99'c', fresh render 100'd' 101'e'"
    assert token_diff([97], [97, 98], names).endswith("fed nothing, fresh render 98'b'")
    assert token_diff([97], [97], names) == ""
    assert on_lines(f"served tokens stay {shown}") == [
        "served tokens stay at token 2 after 97'a' 98'b'",
        "  fed           99'c'",
        "  fresh render  100'd' 101'e'",
    ]
    assert on_lines("no difference: fed") == ["no difference: fed"]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("verify_renderer", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_a_table_for_the_demo_tokenizer() -> None:
    text = run("--model", "", "--renderer", "auto")
    assert "ok    seam  call, then result" in text
    assert "19 ok  0 warn  0 fail" in text


def test_the_command_prints_json() -> None:
    read = json.loads(run("--model", "", "--json"))
    assert (read["failed"], len(read["checks"])) == (False, 19)
    assert read["checks"][0] == {"area": "seam", "name": "text, then user", "verdict": "ok", "detail": ""}


def test_the_command_fails_with_status_1_and_shows_the_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--model", BYTES, "--renderer", "template:default", "--chat-template", str(CHATML))
    with pytest.raises(SystemExit) as caught:
        call_command("verify_renderer", *arguments)
    assert caught.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("fail  seam  text, then user")
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["at", "fed", "fresh"]
    assert "fail: sessions shatter or drift, or turns are misread" in lines


@pytest.mark.parametrize(
    ("model", "template", "says"),
    [
        ("", [], "Its turns are read by:\n  --tool-parser qwen3 --reasoning-parser think\n"),
        (BYTES, ["--chat-template", str(HISTORY / "config/glmish.jinja")], "No parser here reads its turns"),
    ],
)
def test_the_command_says_which_parsers_fit(
    model: str, template: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--model", model, "--renderer", "template", "--tool-parser", "glm", *template)
    with pytest.raises(SystemExit):
        call_command("verify_renderer", *arguments)
    assert says in capsys.readouterr().out


def test_the_command_says_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="does not exist"):
        run("--model", str(tmp_path / "nothing"))
    with pytest.raises(CommandError, match="JSON"):
        run("--model", "", "--chat-template-kwargs", "{bad")
