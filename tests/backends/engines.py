"""One builder for each backend that is reached over HTTP, as tests parametrise over them."""

from collections.abc import Callable

from sessions_app.backends.base import Backend
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.sglang import SglangChat
from sessions_app.backends.sglang_generate import SglangGenerate
from sessions_app.backends.vllm import VllmGenerate
from sessions_app.backends.vllm_chat import VllmChat
from sessions_app.backends.vllm_completions import VllmCompletions
from tests.backends.requests import VOCAB_SIZE

ENGINES: dict[str, Callable[[Dispatcher], Backend]] = {
    "sglang": lambda dispatcher: SglangChat(dispatcher, VOCAB_SIZE, EngineFlags()),
    "sglang-generate": lambda dispatcher: SglangGenerate(dispatcher, VOCAB_SIZE, EngineFlags()),
    "vllm": lambda dispatcher: VllmGenerate(dispatcher, VOCAB_SIZE),
    "vllm-completions": lambda dispatcher: VllmCompletions(dispatcher, VOCAB_SIZE),
    "vllm-chat": lambda dispatcher: VllmChat(dispatcher, VOCAB_SIZE),
}
