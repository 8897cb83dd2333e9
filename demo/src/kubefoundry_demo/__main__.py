"""Entry point of the demo. Its modules take half a second to load: Ctrl-C ends it without a traceback then, too."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Console script. Exit code 1 with one line if something is missing or fails, 130 if interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        from kubefoundry_demo.main import main as demo

        demo()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
