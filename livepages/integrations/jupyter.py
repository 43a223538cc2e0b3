"""``python -m livepages.integrations.jupyter``: a Jupyter server for one site, which ends with its parent process.

A line of JSON on standard input holds the ``token`` and the ``origin`` of the requests that it answers, and ``idle``:
after how many seconds without a page a kernel ends. A line on standard output answers with the ``port``. When
standard input ends, as it does however the parent process ends, the server ends with its kernels and its files.
Nothing of the user's configuration is read, and the token is written nowhere.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

GRACE = 5  # seconds that kernels have to end


def main() -> None:
    """Serve until standard input ends."""
    folder = Path(tempfile.mkdtemp(prefix="live-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # before what libraries register, and so done after it
    given = json.loads(sys.stdin.readline())
    for name in ("runtime", "config", "data", "ipython", "temporary"):
        (folder / name).mkdir()
    os.environ |= {
        "JUPYTER_NO_CONFIG": "1",
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "IPYTHONDIR": str(folder / "ipython"),
        "TMPDIR": str(folder / "temporary"),
    }
    tempfile.tempdir = None  # so that it looks at the variable again
    server = _server(given["token"], given["origin"], given["idle"])
    server.initialize(argv=[])
    server.io_loop.add_callback(_report_port, server)  # after the one that begins to listen
    threading.Thread(target=_end_with_input, args=[server], daemon=True).start()
    server.start()


def _server(token: str, origin: str, idle: int) -> Any:
    """The server, with everything off that running code does not need."""
    # jsonschema would import a grammar of IRIs, which takes half of the start and is not used here.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    from jupyter_server.auth.identity import IdentityProvider
    from jupyter_server.serverapp import ServerApp
    from traitlets.config import Config

    class Strict(IdentityProvider):
        """A check of who asks that looks at the origin of requests with the token, too."""

        def should_check_origin(self, handler: Any) -> bool:
            return True

    class Silent(ServerApp):
        """A server that leaves no file that holds the token."""

        def write_server_info_file(self) -> None:
            pass

        def write_browser_open_files(self) -> None:
            pass

    config = Config()
    config.ServerApp.update(
        ip="127.0.0.1",
        port=0,
        port_retries=0,
        allow_origin=origin,
        allow_root=True,
        allow_unauthenticated_access=False,
        identity_provider_class=Strict,
        jpserver_extensions={},
        log_level="ERROR",
        open_browser=False,
        terminals_enabled=False,
    )
    config.IdentityProvider.token = token
    config.MappingKernelManager.update(
        cull_busy=True, cull_connected=False, cull_idle_timeout=idle, cull_interval=max(1, idle // 10)
    )
    return Silent.instance(config=config)


def _report_port(server: Any) -> None:
    """Say at which port the server listens; what kernels may write to the same stream goes nowhere."""
    print(json.dumps({"port": server.port}), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _end_with_input(server: Any) -> None:
    sys.stdin.read()
    server.io_loop.add_callback(server.io_loop.stop)
    threading.Event().wait(GRACE)
    os._exit(1)  # which ends its kernels as well: they look after their parent


if __name__ == "__main__":
    main()
