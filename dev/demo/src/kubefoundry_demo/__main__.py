"""Entry point of the demo. Ctrl-C ends it without a traceback even while its modules are imported (half a second)."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the demo. Exit with 1 and one line if a prerequisite is missing or fails, with 130 if interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        from kubefoundry_demo.main import main as demo

        demo()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
