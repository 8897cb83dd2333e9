"""`make release`: write every file of a release.

python -m release FOLDER [--version VERSION] [--component NAME...] [--architecture NAME...] [--debian-lock FILE]
    [--sign-key FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from images import debian
from images.components import components
from images.debian import ARCHITECTURES, Failure

from release import checksums, files, signatures
from release.files import Selection
from release.source import source


def main() -> None:
    """Exit code 1 if the checkout cannot be released, or a file not be written."""
    parser = argparse.ArgumentParser(prog="python -m release", description="Write every file of a release.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version")
    parser.add_argument("--component", nargs="+", choices=list(components()), default=list(components()))
    parser.add_argument("--architecture", nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES)
    parser.add_argument("--debian-lock", type=Path, default=debian.LOCK)
    parser.add_argument("--sign-key", type=Path)
    given = parser.parse_args()
    try:
        release(
            given.folder,
            given.version,
            Selection(given.component, given.architecture, given.debian_lock),
            given.sign_key,
        )
    except (Failure, OSError) as error:
        sys.exit(f"make release: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"make release: {error.cmd[0]} failed, see above")


def release(folder: Path, version: str | None, selection: Selection, sign_key: Path | None) -> None:
    """Write a release into a folder, in one step. It replaces an earlier one."""
    released = source(version)
    if sign_key:
        signatures.check(sign_key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".release-") as work:
        new = Path(work, "new")
        files.write(new, released, selection)
        checksums.write(new)
        if sign_key:
            signatures.write(new, sign_key)
        if folder.exists():
            folder.rename(Path(work, "earlier"))
        new.rename(folder)
    print(f"{folder} has release {released.version} of commit {released.commit}")


if __name__ == "__main__":
    main()
