"""A tiny random Qwen-style model with the demo tokenizer. Without torch nothing here runs, and says so."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> list[str]:
    """Loud, once per run."""
    return [] if find_spec("torch") else ["torch is not installed: the tests of backend `local` do not run"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a two-layer Qwen2 with random weights."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("tiny-model")
    tokenizer = load_tokenizer(str(DEMO_MODEL))
    torch.manual_seed(7)
    config = Qwen2Config(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        eos_token_id=min(tokenizer.end_ids),
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    for file in DEMO_MODEL.iterdir():
        shutil.copy(file, folder / file.name)
    return folder
