"""The program `kubefoundry-conformance`: check the SDK's version, then import what needs it."""

from __future__ import annotations

import sys

from kubefoundry_conformance.versions import mismatch


def main() -> int:
    """Run the command line, and return its exit code; 2 if the installed SDK has another version."""
    if reason := mismatch():
        print(f"kubefoundry-conformance: {reason}", file=sys.stderr)
        return 2
    # Imported after the check: names that another SDK lacks would end in an ImportError.
    from kubefoundry_conformance.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
