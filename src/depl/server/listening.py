"""The socket that the service listens on."""

from __future__ import annotations

import errno
import os
import socket

from depl.core.errors import ConfigError


def listen(host: str, port: int) -> socket.socket:
    """A bound and listening TCP socket.

    Parameters
    ----------
    host : str
        An address or name of this machine.
    port : int
        0 picks a free one.

    Returns
    -------
    socket
        The caller closes it.

    Raises
    ------
    ConfigError
        If the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"Port {port} is in use at {host}, perhaps by another depl serve. Stop that, or "
                f"choose another --port (0 finds a free one)."
            ) from error
        # Python adds to what the system says; of names it says it alone.
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or error
        raise ConfigError(
            f"Cannot listen at {host}, port {port}: {why}. Choose another --port (0 finds a free "
            f"one) or --host."
        ) from error
    # Accepted connections inherit this. asyncio sets it only on sockets whose protocol is named,
    # which those of `create_server` are not; and without it the second packet of an answer waits
    # some 40 ms for the client to acknowledge the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
