"""Stop an answer that never ends, whether it loops in Python or in a compiled program."""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from examiner.tools import Refused

SECONDS = float(os.environ.get("EXAMINER_SECONDS", "60"))  # of the processor: far more than any answer needs
WAITS = 10  # seconds of the clock for each of those, for an answer that only waits, beside whatever else runs
GRACE = 5.0  # for Python to react


def limited(name: str, act: Callable[[], None]) -> None:
    """Run `act`, but not forever.

    After `SECONDS`, Python code is interrupted, as by Ctrl-C. A compiled program cannot be interrupted: if it still
    runs after a few more seconds, this prints the name and ends the process.

    Raises:
        Refused: it was interrupted.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread can be interrupted
        act()
        return
    process, clock = time.process_time(), time.monotonic()
    over, late, out = threading.Event(), threading.Event(), sys.stdout

    def left() -> float:
        return SECONDS - max(time.process_time() - process, (time.monotonic() - clock) / WAITS)

    def watch() -> None:
        while (seconds := left()) > 0:
            if over.wait(max(seconds, 0.1)):
                return
        late.set()
        _thread.interrupt_main()
        if over.wait(GRACE):
            return
        print(
            f"{name}: still running after {SECONDS:g} seconds, in a compiled program, which Python cannot interrupt. "
            "Does the condition of its while_loop ever become false? The examiner stops here.",
            file=out,
            flush=True,
        )
        over.wait(1)  # a notebook sends it from another thread
        os._exit(1)

    # What a shell starts in the background ignores Ctrl-C, and with it the interruption.
    ignored = None if callable(handler := signal.getsignal(signal.SIGINT)) else handler
    if ignored is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=watch, daemon=True).start()
    try:
        act()
    except BaseException:  # JAX may wrap the interruption in an error of its own
        if not late.is_set():
            raise
        raise Refused(f"still running after {SECONDS:g} seconds: one of its loops may never end") from None
    finally:
        over.set()
        if ignored is not None:
            signal.signal(signal.SIGINT, ignored)
