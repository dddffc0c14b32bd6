"""Trains the demo tokenizer: byte-level BPE on the text of this repository.

python -m sessions_app.rendering.demo.train [FOLDER]

The same text gives the same files. The tokenizer is committed, so that a demo installation renders the ids
that the tests know; train it anew only on purpose.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SOURCES = ("*.py", "*.md", "*.html", "*.toml", "*.jinja")
VOCABULARY = 4096
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def corpus() -> Iterator[str]:
    """Every text file of the repository, in the order of its path, line by line."""
    files = sorted({path for pattern in SOURCES for path in ROOT.rglob(pattern)})
    for path in files:
        hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        if not hidden and "vectors" not in path.parts:
            yield from path.read_text(encoding="utf-8").splitlines(keepends=True)


def train(lines: Iterator[str]) -> Tokenizer:
    """The tokenizer of these lines; marks and special tokens have the highest ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKS])
    return tokenizer


def write(tokenizer: Tokenizer, folder: Path) -> None:
    """A folder that AutoTokenizer loads."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1_000_000,
    }
    text = json.dumps(configuration, indent=1) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    template = (HERE / "chat_template.jinja").read_text(encoding="utf-8")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


if __name__ == "__main__":
    write(train(corpus()), Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tokenizer")
