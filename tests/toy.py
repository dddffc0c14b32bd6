"""The toy tokenizer and templates of the acceptance cases: ids that can be checked by eye."""

import json
from pathlib import Path

NAMED = {
    "<|im_start|>": 1, "<|im_end|>": 2, "\n": 3, "system": 4, "user": 5, "assistant": 6, "tool": 7,
    "<think>": 8, "</think>": 9, "<tool_call>": 10, "</tool_call>": 11, "<|obs|>": 12, "<|image_pad|>": 60,
    "ab": 100, "hello": 101, "ok": 102,
}  # fmt: skip
_SPECIAL = {"<|im_start|>", "<|im_end|>", "<|obs|>", "<|image_pad|>"}
_CHARACTERS = range(0x20, 0x500)

_MESSAGE = "{{ '<|im_start|>' ~ m.role ~ '\n' }}"
_CALLS = (
    "{% for c in m.tool_calls or [] %}"
    "{{ '<tool_call>' ~ c.function.name ~ ' ' ~ c.function.arguments | tojson ~ '</tool_call>' }}"
    "{% endfor %}"
)
_BODY = "{{ m.content or '' }}" + _CALLS + "{{ '<|im_end|>\n' }}"
_PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
_TOOLS = "{% if tools %}{{ '<|im_start|>system\n' ~ tools | tojson ~ '<|im_end|>\n' }}{% endif %}"
_REASONING = "{{ '<think>' ~ m.reasoning_content ~ '</think>' }}"

TEMPLATES = {
    "toy-chatml": _TOOLS
    + "{% for m in messages %}" + _MESSAGE
    + "{% if m.reasoning_content %}" + _REASONING + "{% endif %}"
    + _BODY + "{% endfor %}" + _PROMPT,
    "toy-chatml-strip-think": "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    + _TOOLS + "{% for m in messages %}" + _MESSAGE
    + "{% if m.reasoning_content and loop.index0 > ns.last %}" + _REASONING + "{% endif %}"
    + _BODY + "{% endfor %}" + _PROMPT,
    "toy-chatml-empty-think-in-generation-prompt": _TOOLS
    + "{% for m in messages %}" + _MESSAGE + _BODY + "{% endfor %}"
    + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think></think>' }}{% endif %}",
}  # fmt: skip


def write_model(folder: Path) -> Path:
    """A tokenizer folder; encoding takes the longest match."""
    folder.mkdir(parents=True, exist_ok=True)
    added = [
        {
            "id": id_, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": text in _SPECIAL,
        }
        for text, id_ in NAMED.items()
    ]  # fmt: skip
    vocab = {chr(point): 1000 + point for point in _CHARACTERS} | NAMED
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
            "merges": [],
        },
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1_000_000,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def write_template(folder: Path, name: str) -> Path:
    """A template file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jinja"
    path.write_text(TEMPLATES[name], encoding="utf-8")
    return path
