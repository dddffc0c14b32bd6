"""`manage.py demo_engine`: an engine without a model, to try the product with. Needs no database."""

import asyncio
import os
import signal

from aiohttp import web
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app.backends.demo.echo import EchoEngine
from sessions_app.backends.demo.faults import FAULTS
from sessions_app.backends.demo.model import DemoModel
from sessions_app.backends.demo.server import DemoEngine
from sessions_app.backends.factory import DEMO_ENGINE_PORT
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer


class Command(BaseCommand):
    """Serves until SIGINT or SIGTERM."""

    help = "Run the demo engine: SGLang's and vLLM's protocols, a tool-using assistant, no model"
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """The switches of the engine."""
        parser.add_argument("--bind", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=DEMO_ENGINE_PORT, help="0 picks a free port")
        parser.add_argument("--latency-ms", type=float, default=0.0, help="time each generation takes")
        parser.add_argument("--fault", default="", help=f"fail every generation: {', '.join(FAULTS)}")
        parser.add_argument("--model", default="", help="tokenizer folder or hub name; default: TITO_MODEL")
        parser.add_argument(
            "--context-length", type=int, default=131_072, help="most ids of one prompt (default 131072)"
        )
        parser.add_argument("--echo", action="store_true", help="the same reply each time, for benchmarks")

    def handle(self, *, fault: str, latency_ms: float, model: str, **options: object) -> None:
        """Load the tokenizer, then serve."""
        try:
            tokenizer = load_tokenizer(model or settings.TITO.model or str(DEMO_MODEL))
            engine: DemoEngine | EchoEngine
            if options["echo"]:
                engine = EchoEngine(tokenizer, latency_ms / 1000)
            else:
                engine = DemoEngine(
                    DemoModel(tokenizer),
                    latency_s=latency_ms / 1000,
                    context_length=int(str(options["context_length"])),
                )
                engine.set_fault(fault)
        except ValueError as error:
            raise CommandError(str(error)) from None
        asyncio.run(self._serve(engine, str(options["bind"]), int(str(options["port"]))))

    async def _serve(self, engine: DemoEngine | EchoEngine, bind: str, port: int) -> None:
        runner = web.AppRunner(engine.application(), handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, bind, port).start()
        except OSError as error:
            await runner.cleanup()
            raise CommandError(f"cannot listen on {bind}:{port}: {os.strerror(error.errno or 0)}") from None
        self.stdout.write(f"demo engine at http://{bind}:{runner.addresses[0][1]}")
        self.stdout.flush()
        await _stop_signal()
        await runner.cleanup()


async def _stop_signal() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
