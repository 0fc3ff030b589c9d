"""The listening socket: what connections inherit from it, and addresses that cannot be used."""

from __future__ import annotations

import socket

import httpx
import pytest

from depl.core.errors import ConfigError
from depl.server.app import create_app
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
        with pytest.raises(ConfigError, match=rf"port {port}: .* Choose another --port"):
            listen("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
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
