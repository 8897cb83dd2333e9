"""`make images`: an OCI layout of each component, and `make lock-debian`: the lock of Debian's packages.

python -m images build FOLDER [COMPONENT...] [--architecture NAME...] [--debian-lock FILE]
python -m images lock [FILE] [--architecture NAME...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from images import debian
from images.build import build
from images.components import components
from images.debian import ARCHITECTURES, Failure


def main() -> None:
    """Exit code 1 if a package cannot be downloaded or an image not be built."""
    parser = argparse.ArgumentParser(
        prog="python -m images", description="Build images without a container engine."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="write an OCI layout of each component")
    building.add_argument("folder", type=Path)
    building.add_argument("components", nargs="*", metavar="COMPONENT")
    building.add_argument("--architecture", nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES)
    building.add_argument("--debian-lock", type=Path, default=debian.LOCK)
    locking = commands.add_parser("lock", help="lock the newest packages of Debian")
    locking.add_argument("file", type=Path, nargs="?", default=debian.LOCK)
    locking.add_argument("--architecture", nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES)
    given = parser.parse_args()
    if given.command == "build" and (unknown := sorted(set(given.components) - components().keys())):
        parser.error(f"no component {', '.join(unknown)}; there are {', '.join(components())}")
    try:
        if given.command == "lock":
            debian.write_lock(given.file, given.architecture)
        else:
            names = given.components or list(components())
            for image in build(given.folder, names, given.architecture, given.debian_lock):
                print(image)
    except Failure as failure:
        sys.exit(f"make images: {failure}")
    except OSError as error:
        sys.exit(f"make images: {error}; a missing program is of the packages apt or dpkg")
    except subprocess.CalledProcessError as error:
        sys.exit(f"make images: {error.cmd[0]} failed, see above")


if __name__ == "__main__":
    main()
