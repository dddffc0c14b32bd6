"""The HTTP protocol of the web server, with limits on how long a client may take, and on a request's head.

uvicorn waits without end for the rest of a request and for a client that reads nothing, and keeps as many
headers as somebody sends. Invariants: a head larger than a few pieces of the socket's is not kept; a
connection on which the client is due to do something, and does not in TITO_READ_TIMEOUT_S, is closed. Time
that we take (a generation) does not count.
"""

import asyncio
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LONGEST_HEAD = 65_536
"""Bytes of address and headers beyond the piece that they begin in."""
_TEXT = b'{"error":"the request did not arrive whole in time"}'
_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_TEXT), _TEXT)
)
_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class ImpatientProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._patience_s: float = settings.TITO.read_timeout_s
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        goes_on = self._in_head
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if goes_on and self._in_head else 0
        if self._head_bytes > _LONGEST_HEAD and not self.transport.is_closing():
            if self._idle():
                self.transport.write(_LARGE)
            self.transport.close()
        elif self._idle() and not self.transport.is_closing():
            # Between two requests uvicorn takes empty lines, and what is left of a body, for a sign of life.
            self._expect_request()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request is due."""
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._stop_reading_timer()
        self._stop_writing_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The rest of a request is due."""
        self._expect_request()
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._stop_reading_timer()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client is due to read."""
        super().pause_writing()
        self._writing = self._writing or self.loop.call_later(self._patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It did."""
        self._stop_writing_timer()
        super().resume_writing()

    def _expect_request(self) -> None:
        if self._reading is None:
            self._reading = self.loop.call_later(self._patience_s, self._give_up)

    def _give_up(self) -> None:
        """Say so where nothing else is being answered, and hang up."""
        self._reading = None
        if self._idle() or (self.cycle.more_body and not self.cycle.response_started and not self.pipeline):
            self.transport.write(_LATE)
        self.transport.close()

    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_writing_timer(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
