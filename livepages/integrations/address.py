"""The address that a site is served at, and the message with which a command ends if it cannot be used."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from mkdocs.exceptions import Abort

# The environment variable that holds the command to serve at another `{port}` of `{host}`, if it is not MkDocs's own.
SERVE = "LIVEPAGES_SERVE"


def check_address(host: str, port: int) -> None:
    """Find out whether a server can listen there.

    Raises:
        Abort: it cannot.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe, explained(host, port):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        probe.bind((host, port))


@contextmanager
def explained(host: str, port: int) -> Iterator[None]:
    """End the command, at an error of the system, with a message on the address and what to do.

    Raises:
        Abort: there was one.
    """
    try:
        yield
    except OSError as error:
        reason = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        command = os.environ.get(SERVE) or f"{Abort.__module__.partition('.')[0]} serve -a {{host}}:{{port}}"
        other = command.format(host=host, port=8001 if port == 8000 else 8000)
        message = f"The site cannot be served at {host}:{port}: {reason}; choose another address, as in `{other}`"
        raise Abort(message) from None
