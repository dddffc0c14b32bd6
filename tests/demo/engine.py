"""The demo engine in a thread of the test process, on a free port."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from sessions_app.backends.demo.model import DemoModel
from sessions_app.backends.demo.server import DemoEngine
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer


@contextmanager
def running_demo_engine() -> Iterator[tuple[DemoEngine, str]]:
    """The engine, for its switches, and its URL."""
    engine = DemoEngine(DemoModel(load_tokenizer(str(DEMO_MODEL))))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = web.AppRunner(engine.application(), shutdown_timeout=0.1)
    asyncio.run_coroutine_threadsafe(_listen(runner), loop).result(10)
    try:
        yield engine, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _listen(runner: web.AppRunner) -> None:
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
