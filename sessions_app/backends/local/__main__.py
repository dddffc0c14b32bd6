"""The local engine as a process: `python -m sessions_app.backends.local --model FOLDER --home HOME`.

Lives as long as any server process holds the users' lock of its home, however those processes end.
"""

import argparse
import asyncio
from pathlib import Path

from aiohttp import web

from sessions_app.backends.local.server import LocalEngine
from sessions_app.backends.local.sharing import EngineFiles

_CHECK_S = 0.5


async def serve(files: EngineFiles, model: str) -> None:
    """Listen on a free loopback port, say so in the address file, end when nobody uses it."""
    runner = web.AppRunner(LocalEngine(model).application(), handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    files.write_address(runner.addresses[0][1], model)
    while files.in_use():  # noqa: ASYNC110 - a lock of other processes sends no event
        await asyncio.sleep(_CHECK_S)
    await runner.cleanup()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--home", required=True, type=Path)
    options = parser.parse_args()
    asyncio.run(serve(EngineFiles(options.home), options.model))


if __name__ == "__main__":
    main()
