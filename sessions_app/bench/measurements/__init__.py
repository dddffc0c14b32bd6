"""One question a file. Each takes a rig and the sizes, and returns its part of the JSON."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

Measurement = Callable[[Rig, Sizes], Awaitable[Mapping[str, Any]]]
