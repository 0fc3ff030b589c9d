"""Clients' connections: how long each may keep the service waiting, and when it has to leave."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = (
    500  # open at the same time; for a further one, that which waits longest is closed
)
MAX_SILENCE = 10.0  # seconds from the connection, or the last answer, to the end of the headers


class Connection(H11Protocol):
    """A connection that is closed when its client does not send a request in time.

    Clients that send nothing, or a header a minute, must not keep others out: uvicorn alone gives
    them all the time they want, and answers 503 to everybody while there are too many of them.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; close another connection where there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(MAX_SILENCE, self._look)
        if len(self.connections) > MAX_CONNECTIONS:
            others = [x for x in self.connections if isinstance(x, Connection) and x is not self]
            waiting = [x for x in others if x.waits_for_client]
            leaving = min(waiting, key=lambda x: x._since, default=self)
            leaving.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer was sent: the time for the next request begins."""
        self._since = self.loop.time()
        super().on_response_complete()

    def shutdown(self) -> None:
        """The service stops: what it has received in full is answered, the rest is not awaited."""
        if self.waits_for_client:
            self.transport.abort()
        else:
            super().shutdown()

    @property
    def waits_for_client(self) -> bool:
        """Whether the client has not yet sent the whole of a request."""
        state: Any = self.conn.their_state
        return state in (h11.IDLE, h11.SEND_BODY)

    def _look(self) -> None:
        left = self._since + MAX_SILENCE - self.loop.time()
        if self.conn.their_state is h11.IDLE and left <= 0:
            self.transport.close()
            return
        self._timer = self.loop.call_later(max(left, 0.1 * MAX_SILENCE), self._look)


class Server(uvicorn.Server):
    """A server that, when it stops, closes the connections that come at the last moment, too.

    uvicorn tells those that are there. One that is made just then would be kept open, its requests
    be answered until the time for stopping is over, and the last of them be cut off.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: answer what was accepted, and then no more."""
        telling = asyncio.create_task(self._keep_telling())
        try:
            await super().shutdown(sockets)
        finally:
            telling.cancel()

    async def _keep_telling(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            for connection in list(self.server_state.connections):
                connection.shutdown()
