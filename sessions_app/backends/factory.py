"""The backend that a configuration names. The only place that knows all of them."""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from sessions_app.backends.base import Backend
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.http import HttpClient
from sessions_app.backends.local.backend import LocalBackend, LocalProtocol, require_torch
from sessions_app.backends.local.sharing import SharedEngine
from sessions_app.backends.routing import EnginePool
from sessions_app.backends.sglang import SglangChat
from sessions_app.backends.sglang_generate import SglangGenerate
from sessions_app.backends.tokenizer_check import probe_of
from sessions_app.backends.vllm import VllmGenerate
from sessions_app.backends.vllm_chat import VllmChat
from sessions_app.backends.vllm_completions import VllmCompletions
from sessions_app.rendering.protocol import Renderer
from tito_project.configuration import Configuration

_Vllm = Callable[[Dispatcher, int, str | None], Backend]
"""Dispatcher, size of the vocabulary, name of an adapter."""
DEMO_ENGINE_PORT = 8900
"""Where the demo engine listens unless told otherwise."""


def create_backend(configuration: Configuration, renderer: Renderer) -> Backend:
    """A backend, not yet started."""
    return _BUILDERS[configuration.backend](configuration, renderer)


def engine_urls(configuration: Configuration) -> tuple[str, ...]:
    """The base URLs; only the demo engine has a default."""
    if configuration.backend_url:
        for url in configuration.backend_url:
            _check_address(url)
        return configuration.backend_url
    if configuration.backend == "demo":
        return (f"http://127.0.0.1:{DEMO_ENGINE_PORT}",)
    raise ImproperlyConfigured(f"TITO_BACKEND={configuration.backend} needs TITO_BACKEND_URL")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        usable = parts.scheme in ("http", "https") and host and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ImproperlyConfigured(f"TITO_BACKEND_URL={url!r} is no http:// or https:// address")


def _dispatcher(configuration: Configuration, renderer: Renderer) -> Dispatcher:
    client, pool = HttpClient(configuration.engine_timeout), EnginePool(engine_urls(configuration))
    return Dispatcher(client, pool, probe=probe_of(renderer))


def _flags(configuration: Configuration) -> EngineFlags:
    return EngineFlags(configuration.routing_replay, configuration.indexer_replay, configuration.lora_name)


def _sglang(configuration: Configuration, renderer: Renderer) -> Backend:
    dispatcher = _dispatcher(configuration, renderer)
    return SglangChat(dispatcher, renderer.vocab_size, _flags(configuration), name=configuration.backend)


def _sglang_generate(configuration: Configuration, renderer: Renderer) -> Backend:
    return SglangGenerate(_dispatcher(configuration, renderer), renderer.vocab_size, _flags(configuration))


def _vllm(kind: _Vllm, configuration: Configuration, renderer: Renderer) -> Backend:
    return kind(_dispatcher(configuration, renderer), renderer.vocab_size, configuration.lora_name)


def _local(configuration: Configuration, renderer: Renderer) -> Backend:
    """With an address it is taken as running; otherwise this process starts it, or shares a started one."""

    def connect(*urls: str) -> LocalProtocol:
        dispatcher = Dispatcher(HttpClient(configuration.engine_timeout), EnginePool(urls))
        return LocalProtocol(dispatcher, renderer.vocab_size, EngineFlags())

    if configuration.backend_url:
        return connect(*engine_urls(configuration))
    require_torch()
    if not configuration.model:
        raise ImproperlyConfigured("TITO_BACKEND=local needs TITO_MODEL: a folder with weights and tokenizer")
    return LocalBackend(SharedEngine(configuration.home, configuration.model), connect)


_BUILDERS: dict[str, Callable[[Configuration, Renderer], Backend]] = {
    "sglang": _sglang,
    "demo": _sglang,
    "sglang-generate": _sglang_generate,
    "vllm": partial(_vllm, VllmGenerate),
    "vllm-completions": partial(_vllm, VllmCompletions),
    "vllm-chat": partial(_vllm, VllmChat),
    "local": _local,
}
