"""The listening socket: what connections inherit from it, and addresses that cannot be used."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
import uvicorn

from depl.core.errors import ConfigError
from depl.server.app import create_app
from depl.server.connections import Connection, Server
from depl.server.listening import listen


def test_small_packets_of_an_answer_are_not_held_back(model, uvicorn_running):
    with uvicorn_running(create_app(model)) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/healthz").status_code == 200
        (connection,) = server.uvicorn.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_in_use_or_unknown_is_an_error_that_says_what_to_do():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^Port {port} is in use at 127\.0\.0\.1.*--port"):
            listen("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"at 192\.0\.2\.1, port 0: [\w ']+\. Choose another"):
        listen("192.0.2.1", 0)


def test_ipv6_addresses_work():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")
    try:
        listener = listen("::1", 0)
    except ConfigError:
        pytest.skip("no IPv6 on this machine")
    with listener:
        assert listener.family == socket.AF_INET6


def test_a_connection_made_while_the_service_stops_does_not_keep_it_running():
    free = asyncio.Event()

    async def app(scope, receive, send):
        if scope["path"] == "/slow":
            await free.wait()
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})

    async def stop_with_a_latecomer() -> tuple[bytes, bytes]:
        config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", log_config=None)
        server = Server(config)
        with listen("127.0.0.1", 0) as listener:
            address = listener.getsockname()
            serving = asyncio.create_task(server.serve([listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            accepted, busy = await asyncio.open_connection(*address)
            busy.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            late, writer = await asyncio.open_connection(*address)
            while len(server.server_state.connections) < 2:
                await asyncio.sleep(0.01)
            # As if it had been accepted just after the others were told.
            (its,) = (x for x in server.server_state.connections if x.cycle is None)
            server.server_state.connections.remove(its)
            server.should_exit = True
            await asyncio.sleep(0.3)
            server.server_state.connections.add(its)
            await asyncio.sleep(0.1)
            writer.write(b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n")
            try:
                told = await asyncio.wait_for(late.read(20), 5)
            except ConnectionError:
                told = b""
            free.set()
            answer = await accepted.read()
            await asyncio.wait_for(serving, 10)
            for connection in (busy, writer):
                connection.transport.abort()
        return answer, told

    answer, told = asyncio.run(stop_with_a_latecomer())
    assert answer.endswith(b"done")
    assert told == b""
