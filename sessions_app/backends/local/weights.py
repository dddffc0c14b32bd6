"""Loads a model and its tokenizer from a folder: safetensors, or the GGUF file that its pointer names."""

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sessions_app.backends.local.sequences import Stops
from sessions_app.backends.local.smollm2 import GGUF_POINTER
from sessions_app.rendering.tokenizer import ChatTokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """What the scheduler needs."""

    model: Any
    tokenizer: ChatTokenizer
    stops: Stops
    pad: int
    context_length: int


def load(folder: str) -> LoadedModel:
    """bf16 on a GPU, float32 on a CPU. Raises ValueError naming what is missing."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    tokenizer = ChatTokenizer.load(folder)
    model = _model(folder)
    eos = tokenizer.end_ids | _configured_ends(model)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        stops=Stops(eos, tokenizer.decode),
        pad=min(eos, default=0),
        context_length=int(getattr(model.config, "max_position_embeddings", 2048)),
    )


def _model(folder: str) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    gpu = torch.cuda.is_available()
    options: dict[str, Any] = {"dtype": torch.bfloat16 if gpu else torch.float32}
    pointer = Path(folder) / GGUF_POINTER
    source = folder
    if pointer.is_file():
        file = Path(json.loads(pointer.read_text(encoding="utf-8"))["gguf"])
        source, options["gguf_file"] = str(file.parent), file.name
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(source, **options)
    except (OSError, ValueError, ImportError) as error:
        raise ValueError(f"model {folder!r} cannot be loaded: {str(error).splitlines()[0]}") from error
    return model.to("cuda" if gpu else "cpu").eval()


def _configured_ends(model: Any) -> frozenset[int]:
    ends = model.generation_config.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
