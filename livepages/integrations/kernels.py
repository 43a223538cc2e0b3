"""The Jupyter server that runs the blocks of a served site for its reader, on this machine and for this site alone."""

import ipaddress
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from livepages.execution import FIXED

NAME = "live-kernels"  # below the root of the served site
NEEDED = ("jupyter_server", "ipykernel")


class KernelsError(Exception):
    """Raised if blocks cannot be run from the pages; the message says why."""


class Kernels:
    """A Jupyter server on the loopback address, which starts at the first request of a page.

    Only pages of one address get to know its port and its token, and only their requests are answered. It ends with
    this process, however that ends. All methods may be called in any thread.
    """

    def __init__(self, url: str, idle: int = 300) -> None:
        """Note the address of the site, and after how many seconds a kernel ends whose page was closed."""
        self._idle = idle
        parts = urlsplit(url)
        self._host, self._root = parts.netloc, parts.path
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._lock = threading.Lock()
        self._access: dict[str, str] | None = None
        self._process: subprocess.Popen[str] | None = None
        self.off = ""  # why nothing can be run; empty if it can
        if not _is_loopback(parts.hostname or ""):
            self.off = (
                f"Nothing can be run from the pages, because {parts.hostname} serves them to other machines, "
                "whose readers would run code on this one. Serve them at 127.0.0.1 to run their blocks."
            )

    def offered(self, application: WSGIApplication) -> WSGIApplication:
        """A server's application that also answers the site's own pages how to reach the Jupyter server."""

        def offered(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            if environ.get("PATH_INFO") != self._root + NAME:
                return application(environ, start)
            status, answer = self._answer(environ)
            content = json.dumps(answer).encode()
            kind = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
            start(status, [*kind, ("Content-Length", str(len(content)))])
            return [content]

        return offered

    def _answer(self, environ: WSGIEnvironment) -> tuple[str, dict[str, str]]:
        if self.off:
            return "200 OK", {"off": self.off}
        # A browser sends the origin of each POST, and the host of its address, so requests of other sites are known.
        sent = [environ.get(name) for name in ("REQUEST_METHOD", "HTTP_HOST", "HTTP_ORIGIN")]
        if sent != ["POST", self._host, self._origin]:
            return "403 Forbidden", {"off": f"Blocks run on pages that are opened at {self._origin}{self._root} only."}
        try:
            return "200 OK", self.access()
        except KernelsError as error:
            return "200 OK", {"off": str(error)}

    def access(self) -> dict[str, str]:
        """The ``address`` of the server and its ``token``; it starts if it does not run.

        Raises:
            KernelsError: it cannot be started.
        """
        with self._lock:
            if self._access is None or self._process is None or self._process.poll() is not None:
                self._end()
                self._access = self._start()
            return self._access

    def close(self) -> None:
        """End the server and its kernels."""
        with self._lock:
            self._end()

    def _start(self) -> dict[str, str]:
        if missing := [name.replace("_", "-") for name in NEEDED if not find_spec(name)]:
            raise KernelsError(f"To run blocks, install {' and '.join(missing)}, and serve the site again.")
        token = secrets.token_urlsafe(32)
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "livepages.integrations.jupyter"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **FIXED},
                start_new_session=True,  # Ctrl-C in the terminal ends it in order, with this process
            )
            assert self._process.stdin and self._process.stdout
            given = {"token": token, "origin": self._origin, "idle": self._idle}
            try:
                self._process.stdin.write(json.dumps(given) + "\n")
                self._process.stdin.flush()
                port = json.loads(self._process.stdout.readline())["port"]
            except (OSError, ValueError):
                self._process.wait()
                errors.seek(0)
                self._end()
                last = (errors.read().strip().splitlines() or ["it ended at once"])[-1]
                raise KernelsError(f"The Jupyter server could not be started: {last}") from None
        return {"address": f"127.0.0.1:{port}", "token": token}

    def _end(self) -> None:
        if self._process and self._process.stdin and self._process.stdout:
            with suppress(OSError):  # it has ended before the last message reached it
                self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._process = self._access = None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
