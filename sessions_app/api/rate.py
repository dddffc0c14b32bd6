"""How often one key may ask: TITO_KEY_RATE requests a second, with one second's worth at once.

Counted in Valkey, so that all processes count together; where that does not answer, each process counts for
itself. Only hashes of keys leave the process.
"""

import logging
import math
import time
from collections import OrderedDict

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from sessions_app.errors import RateLimited

logger = logging.getLogger(__name__)

_TAKE = """
    local clock = redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    local due = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
    local wait = due - ARGV[2] - now
    if wait > 0 then return wait end
    redis.call('SET', KEYS[1], due + ARGV[1], 'PX', math.ceil((due + ARGV[1] - now) / 1000) + 1000)
    return 0
"""
"""Waiting time in microseconds. The stored value is when the next request would be due at an even pace."""
_KEPT = 10_000
_PATIENCE_S = 0.25


def configured_limiter(rate: float | None) -> "KeyLimiter | None":
    """The limiter of a process; None without a limit."""
    return None if rate is None else KeyLimiter(rate, settings.REDIS_URL)


class KeyLimiter:
    """One per process; used from one event loop."""

    def __init__(self, rate: float, url: str) -> None:
        self._interval_us = math.ceil(1_000_000 / rate)
        self._ahead_us = max(0, 1_000_000 - self._interval_us)
        self._redis = Redis.from_url(url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S)
        self._take = self._redis.register_script(_TAKE)
        self._due: OrderedDict[bytes, int] = OrderedDict()
        self._alone = False

    async def take(self, key_hash: bytes) -> None:
        """Count one request. Raises RateLimited with the time to wait."""
        wait_us = await self._counted_together(key_hash)
        if wait_us > 0:
            error = RateLimited("too many requests with this key; the limit is TITO_KEY_RATE")
            error.retry_after_s = math.ceil(wait_us / 1_000_000)
            raise error

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _counted_together(self, key_hash: bytes) -> int:
        try:
            wait = await self._take(
                keys=[f"tito:rate:{key_hash.hex()}"], args=[self._interval_us, self._ahead_us]
            )
        except (RedisError, OSError) as error:
            self._note(alone=True, why=type(error).__name__)
            return self._counted_here(key_hash)
        self._note(alone=False)
        return int(wait)

    def _counted_here(self, key_hash: bytes) -> int:
        now = time.monotonic_ns() // 1000
        due = max(now, self._due.get(key_hash, 0))
        wait = due - self._ahead_us - now
        if wait > 0:
            return wait
        self._due[key_hash] = due + self._interval_us
        self._due.move_to_end(key_hash)
        if len(self._due) > _KEPT:
            self._due.popitem(last=False)
        return 0

    def _note(self, *, alone: bool, why: str = "") -> None:
        """Says once when counting together begins or ends to fail."""
        if alone != self._alone:
            self._alone = alone
            logger.warning(
                "rate limits are counted %s %s", "by each process alone:" if alone else "together", why
            )
