"""The backend that a configuration names. The only place that knows all of them."""

from collections.abc import Callable

from django.core.exceptions import ImproperlyConfigured

from sessions_app.backends.base import Backend
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.http import HttpClient
from sessions_app.backends.routing import EnginePool
from sessions_app.backends.sglang import ChatFlags, SglangChat
from sessions_app.rendering.protocol import Renderer
from tito_project.configuration import Configuration

DEMO_ENGINE_PORT = 8900
"""Where the demo engine listens unless told otherwise."""


def create_backend(configuration: Configuration, renderer: Renderer) -> Backend:
    """A backend, not yet started."""
    return _BUILDERS[configuration.backend](configuration, renderer)


def engine_urls(configuration: Configuration) -> tuple[str, ...]:
    """The base URLs; only the demo engine has a default."""
    if configuration.backend_url:
        return configuration.backend_url
    if configuration.backend == "demo":
        return (f"http://127.0.0.1:{DEMO_ENGINE_PORT}",)
    raise ImproperlyConfigured(f"TITO_BACKEND={configuration.backend} needs TITO_BACKEND_URL")


def _dispatcher(configuration: Configuration) -> Dispatcher:
    return Dispatcher(HttpClient(configuration.engine_timeout), EnginePool(engine_urls(configuration)))


def _sglang(configuration: Configuration, renderer: Renderer) -> Backend:
    flags = ChatFlags(
        routing_replay=configuration.routing_replay,
        indexer_replay=configuration.indexer_replay,
        lora_path=configuration.lora_name,
    )
    return SglangChat(_dispatcher(configuration), renderer.vocab_size, flags, name=configuration.backend)


_BUILDERS: dict[str, Callable[[Configuration, Renderer], Backend]] = {
    "sglang": _sglang,
    "demo": _sglang,
}
