"""What backends of vLLM's endpoints have in common; their replies: `vllm_reply`."""

from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.headers import SESSION_ID
from sessions_app.backends.http_backend import HttpBackend
from sessions_app.backends.sampling import COMMON, SamplingNames

_NAMES = COMMON | {
    "seed": "seed",
    "min_tokens": "min_tokens",
    "structured_outputs": "structured_outputs",
    "bad_words": "bad_words",
}


class VllmBackend(HttpBackend):
    """Base of all of them."""

    name: str
    affinity = SESSION_ID

    def __init__(self, dispatcher: Dispatcher, vocab_size: int, lora_name: str | None = None) -> None:
        """`lora_name`: the adapter, which vLLM addresses as a model."""
        super().__init__(dispatcher, vocab_size)
        self._lora_name = lora_name


class VllmTokenBackend(VllmBackend):
    """Base of those that are given ids: sampling parameters are told by the engine's own names."""

    speaks_chat = False

    def __init__(self, dispatcher: Dispatcher, vocab_size: int, lora_name: str | None = None) -> None:
        super().__init__(dispatcher, vocab_size, lora_name)
        self._sampling = SamplingNames(self.name, "max_tokens", _NAMES)
