"""Runs `python llamastack-providers.pyz` and `python -m llamastack_providers`."""

import sys

from llamastack_providers.cli import main

if __name__ == "__main__":
    sys.exit(main())
