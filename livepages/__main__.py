"""``python -m livepages`` is the command ``livepages``."""

import signal


def main() -> None:
    """Carry out the command line. While its modules are imported, Ctrl-C ends it as the system does, without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from livepages.integrations.cli import main as carry_out

    carry_out()


if __name__ == "__main__":
    main()
