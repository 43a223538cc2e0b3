"""The Jupyter server of a served site: the requests that it answers and refuses, and its end with the site."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from livepages.integrations.kernels import NAME, Kernels, KernelsError
from tests.conftest import HANG

for needed in ("jupyter_server", "ipykernel"):
    pytest.importorskip(needed)

SITE = "http://127.0.0.1:8123"
OTHER = "http://127.0.0.1:8124"
STARTED = """
import json, sys, urllib.request
from livepages.integrations.kernels import Kernels
kernels = Kernels("http://127.0.0.1:8123/")
access = kernels.access()
header = {"Authorization": f"token {access['token']}", "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(f"http://{access['address']}/api/kernels", b"{}", header)).close()
print(json.dumps([kernels._process.pid, access["token"]]), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def kernels() -> Iterator[Kernels]:
    found = Kernels(f"{SITE}/guide/")
    yield found
    found.close()


def start(kernels: Kernels) -> str:
    """A new kernel, which nobody is connected to."""
    headers = {**bearing(kernels), "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{kernels.access()['address']}/api/kernels", b"{}", headers)
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["id"])


def ask(
    kernels: Kernels, path: str = "/api/kernels", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str]]:
    """The status and the headers of the Jupyter server's answer."""
    address = f"http://{kernels.access()['address']}{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers, method=method)) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers)


def bearing(kernels: Kernels) -> dict[str, str]:
    return {"Authorization": f"token {kernels.access()['token']}"}


def connect(kernels: Kernels, kernel: str, token: str, origin: str) -> int:
    """The status with which the Jupyter server answers a request for a kernel's socket."""
    from tornado.httpclient import HTTPClientError, HTTPRequest
    from tornado.websocket import websocket_connect

    async def attempt() -> int:
        address = f"ws://{kernels.access()['address']}/api/kernels/{kernel}/channels?token={token}"
        try:
            socket = await websocket_connect(HTTPRequest(address, headers={"Origin": origin}))
        except HTTPClientError as error:
            return error.code
        socket.close()
        return 101

    return asyncio.run(attempt())


def post(application: Callable[..., Any], **changed: str) -> tuple[str, dict[str, str]]:
    """The answer of a served site to a page that asks how to reach the Jupyter server."""
    output: list[str] = []
    environ = {
        "PATH_INFO": f"/guide/{NAME}",
        "REQUEST_METHOD": "POST",
        "HTTP_HOST": "127.0.0.1:8123",
        "HTTP_ORIGIN": SITE,
        **changed,
    }
    content = b"".join(application(environ, lambda status, headers: output.append(status)))
    return output[0], json.loads(content)


def test_it_answers_who_has_the_token_and_nobody_else(kernels: Kernels) -> None:
    assert ask(kernels, **bearing(kernels))[0] == 200
    assert ask(kernels)[0] == 403
    assert ask(kernels, Authorization="token wrong")[0] == 403
    assert ask(kernels, "/api/kernels?token=wrong")[0] == 403
    assert ask(kernels, "/api/contents")[0] == 403


def test_only_pages_of_the_site_may_ask_it(kernels: Kernels) -> None:
    """The browser, too, keeps from a page of another origin what does not name its origin."""
    assert ask(kernels, **bearing(kernels), Origin=SITE)[1]["Access-Control-Allow-Origin"] == SITE
    for origin in (OTHER, "http://localhost:8123", "https://example.org", "null"):
        status, headers = ask(kernels, **bearing(kernels), Origin=origin)
        assert status in (403, 404) and headers.get("Access-Control-Allow-Origin", SITE) == SITE


def test_a_name_that_leads_to_this_machine_is_not_enough(kernels: Kernels) -> None:
    assert ask(kernels, **bearing(kernels), Host="attacker.example")[0] == 403


def test_a_socket_needs_the_token_and_the_origin(kernels: Kernels) -> None:
    access = kernels.access()
    kernel = start(kernels)
    assert connect(kernels, kernel, access["token"], SITE) == 101
    assert connect(kernels, kernel, "wrong", SITE) == 403
    assert connect(kernels, kernel, access["token"], OTHER) == 403


def test_a_kernel_that_no_page_is_connected_to_ends_after_a_while() -> None:
    """A tab may be closed in a way that its page cannot tell."""
    kernels = Kernels(SITE, idle=1)
    try:
        kernel = f"/api/kernels/{start(kernels)}"
        limit = time.monotonic() + HANG
        while ask(kernels, kernel, **bearing(kernels))[0] != 404:
            assert time.monotonic() < limit
            time.sleep(0.1)
    finally:
        kernels.close()


def test_the_token_is_in_no_file_and_no_command_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    kernels = Kernels(SITE)
    try:
        token = kernels.access()["token"]
        assert connect(kernels, start(kernels), token, SITE) == 101  # once the kernel has answered
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert files and not [file for file in files if token.encode() in file.read_bytes()]
        assert kernels._process and isinstance(kernels._process.args, list)
        assert token not in " ".join(map(str, kernels._process.args))
    finally:
        kernels.close()
    assert not [*tmp_path.iterdir()]


def test_a_page_of_the_site_learns_how_to_reach_it(kernels: Kernels) -> None:
    def site(environ: WSGIEnvironment, start: StartResponse) -> list[bytes]:
        start("404 Not Found", [])
        return [b"{}"]

    application = kernels.offered(site)
    assert post(application) == ("200 OK", kernels.access())
    assert post(application, PATH_INFO="/guide/")[0] == "404 Not Found"


@pytest.mark.parametrize(
    "changed",
    [
        {"HTTP_ORIGIN": OTHER},
        {"HTTP_ORIGIN": ""},
        {"HTTP_HOST": "attacker.example:8123", "HTTP_ORIGIN": "http://attacker.example:8123"},
        {"HTTP_HOST": "attacker.example:8123"},
        {"REQUEST_METHOD": "GET"},
    ],
)
def test_nobody_else_learns_it(kernels: Kernels, changed: dict[str, str]) -> None:
    status, answer = post(kernels.offered(lambda environ, start: []), **changed)
    assert status == "403 Forbidden" and set(answer) == {"off"} and f"{SITE}/guide/" in answer["off"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "[::]", "machine.example"])
def test_a_site_that_other_machines_may_open_has_none_and_says_why(host: str) -> None:
    off = Kernels(f"http://{host}:8000/")
    status, answer = post(off.offered(lambda environ, start: []), PATH_INFO=f"/{NAME}")
    assert "other machines" in answer["off"] and "token" not in answer and off._process is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_site_on_this_machine_may_have_one(host: str) -> None:
    assert not Kernels(f"http://{host}:8000/").off


def test_where_jupyter_is_not_installed_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livepages.integrations.kernels.find_spec", lambda name: None)
    with pytest.raises(KernelsError, match="install jupyter-server and ipykernel"):
        Kernels(SITE).access()


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(KernelsError, match="could not be started: it ended at once"):
        Kernels(SITE).access()


def test_it_starts_without_a_grammar_that_takes_as_long_as_all_else() -> None:
    program = (
        "import sys\nfrom livepages.integrations.jupyter import _server\n"
        f"_server('token', {SITE!r}, 9)\nassert 'jsonschema' in sys.modules and 'lark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_starts_again_where_it_has_ended(kernels: Kernels) -> None:
    before = kernels.access()  # which starts it, if no test has yet
    assert kernels._process
    kernels._process.kill()
    kernels._process.wait()
    assert kernels.access()["token"] != before["token"]
    assert ask(kernels, **bearing(kernels))[0] == 200


def test_it_ends_with_the_process_that_started_it_even_if_that_is_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    server, token = json.loads(process.stdout.readline())
    group = {server, *children(server)}
    assert len(group) == 2  # the server and the kernel
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    limit = time.monotonic() + HANG
    while any(map(lives, group)):
        assert time.monotonic() < limit
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """The processes that a process has started; Linux alone says which."""
    files = Path("/proc").glob("[0-9]*/stat")
    found = []
    for file in files:
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(file.parent.name))
    return found


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if not os.path.exists("/proc/self/stat"):
    del test_it_ends_with_the_process_that_started_it_even_if_that_is_killed
