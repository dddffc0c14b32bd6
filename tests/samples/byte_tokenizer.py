"""Decoding of the vectors' tokenizer: ids below 256 are bytes, the rest are whole texts."""

from sessions_app.packing import Ids

ADDED = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>"),
    *("<|observation|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
    *("]~!b[", "]~b]", "[e~[", "<think>", "</think>", "<tool_call>", "</tool_call>"),
]


def decode(ids: Ids) -> str:
    """Text of ids; broken UTF-8 becomes replacement characters."""
    texts: list[str] = []
    pending = bytearray()
    for token in ids.tolist():
        if token < 256:
            pending.append(token)
            continue
        texts += [pending.decode(errors="replace"), ADDED[token - 256]]
        pending.clear()
    return "".join([*texts, pending.decode(errors="replace")])
