"""Everything that a process writes to standard output and error, by whatever means, in the order it is written."""

import ctypes
import io
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from livepages.worker.protocol import ERR, OUT
from livepages.worker.text import escaped, overwritten
from livepages.worker.tracebacks import ENGINE_FRAMES

OUTPUT_LIMIT = 1_000_000  # bytes a block may write


class _Stderr(io.RawIOBase):
    """File descriptor 2; marks around its text tell it from that of descriptor 1, which shares the file."""

    mark = b""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        whole = b"".join((b"\x1e+", self.mark, content, b"\x1e-", self.mark)) if self.mark else content
        write_all(2, whole)
        return len(content)


def write_all(descriptor: int, data: bytes) -> None:
    """Write to a descriptor until all data is written."""
    while data:
        data = data[os.write(descriptor, data) :]


def streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
    """Return new text streams on descriptors 1 and 2, unbuffered, so that their texts are in order."""
    return _unbuffered(io.FileIO(1, "w", closefd=False)), _unbuffered(_Stderr())


def _unbuffered(raw: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


class Capture:
    """Everything written to standard output and error, by whatever means, in order: each block into a file of its own.

    The output of a process that a block has started goes into that block's file, however late. No descriptors are kept
    but 1 and 2: a page may close any other.
    """

    def __init__(self, folder: Path, tidy: Callable[[str], str]) -> None:
        """Begin.

        Args:
            folder: to be made, for the files.
            tidy: replaces the text of standard error, as by `scrub_paths`.
        """
        self._folder, self._tidy = folder, tidy
        self._file = folder
        self._taken: dict[int, int] = {}  # bytes of each block's output
        self._flush_c: Callable[[Any], Any] | None = getattr(_libc(), "fflush", None)
        _Stderr.mark = secrets.token_bytes(8).replace(b"\x1e", b"\x1f").replace(b"\n", b"\v")
        folder.mkdir()

    def begin(self, block: int) -> None:
        """Capture everything written from now on as the output of this block."""
        if self._file != self._folder:
            self._flush()
        self._file = self._folder / str(block)
        self._attach()

    def _attach(self) -> None:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        if descriptor not in (1, 2):
            os.close(descriptor)
        # The streams made before the fork are kept by loggers that were set up then.
        self._streams = (sys.stdout, sys.stderr) = streams()
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]

    def take(self) -> tuple[tuple[tuple[str, str], ...], str]:
        """Return the output of the block, as (stream, text) pairs, and the message on a closed stream, if any."""
        process_error = self._check()
        self._flush()
        block = int(self._file.name)
        pairs, size = self._read(block)
        if size > OUTPUT_LIMIT:
            process_error = process_error or f"wrote more than {OUTPUT_LIMIT:,} bytes of output"
        return pairs, process_error

    def late(self) -> dict[int, tuple[tuple[str, str], ...]]:
        """The output that has come since it was taken, by block."""
        self._flush()
        found = {block: self._read(block)[0] for block in list(self._taken)}
        return {block: pairs for block, pairs in found.items() if pairs}

    def _read(self, block: int) -> tuple[tuple[tuple[str, str], ...], int]:
        """The output of a block that has not been taken yet, up to the limit, and the bytes of all of it."""
        at = self._taken.get(block, 0)
        with (self._folder / str(block)).open("rb") as file:
            file.seek(at)
            data = file.read(max(0, OUTPUT_LIMIT - at))
            size = os.fstat(file.fileno()).st_size
        self._taken[block] = max(at, size)
        return tuple(
            (stream, self._tidy(text) if stream == ERR else text)
            for stream, text in _split(ENGINE_FRAMES.sub(b"", data))
        ), size

    def _flush(self) -> None:
        if self._flush_c:
            self._flush_c(None)

    def _check(self) -> str:
        out, err = self._streams
        process_error = ""
        if sys.stdout is not out or sys.stderr is not err:
            process_error = "left sys.stdout or sys.stderr replaced"
        if out.closed or err.closed or not (_is_open(1) and _is_open(2)):
            process_error = "closed standard output or standard error"
        elif not all(os.path.samestat(os.fstat(standard), os.stat(self._file)) for standard in (1, 2)):
            process_error = "left descriptor 1 or 2, standard output or error, replaced"
        if process_error:
            self._attach()
        else:
            out.flush()
            err.flush()
        return process_error


def _libc() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _split(data: bytes) -> tuple[tuple[str, str], ...]:
    """Marked bytes as (stream, text) pairs, neighbors of one stream joined; a line ends up as a terminal shows it."""
    pairs: list[list[str]] = []
    for number, part in enumerate(data.split(b"\x1e+" + _Stderr.mark)):
        inside, mark, outside = part.partition(b"\x1e-" + _Stderr.mark)
        pieces = [(OUT, part)] if number == 0 or not mark else [(ERR, inside), (OUT, outside)]
        for stream, piece in pieces:
            text = piece.decode("utf-8", errors="backslashreplace")
            if text and pairs and pairs[-1][0] == stream:
                pairs[-1][1] += text
            elif text:
                pairs.append([stream, text])
    return tuple((stream, escaped(overwritten(text))) for stream, text in pairs)
