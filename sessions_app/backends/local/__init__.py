"""A model on this machine: `transformers` and torch in a process of their own, never on the server's event
loop.

The process speaks SGLang's native protocol, so the server's side is the `sglang-generate` backend plus
starting it. Only `decoding`, `sequences` and `weights` import torch, and only that process imports them.
"""
