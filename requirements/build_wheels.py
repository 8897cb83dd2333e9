"""`make wheels`: wheels of our packages and of all that they need, for `pip install --no-index --find-links`.

    python requirements/build_wheels.py FOLDER PACKAGE...

They are complete or not there: built beside, and moved once all of them are done. Earlier versions of the same
packages are removed from the folder; what else is in it stays.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build"
CACHE: Final = BUILD / "wheels"
"""Wheels of others from earlier runs."""

PIP: Final = ("pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
LOCKED: Final = ("--require-hashes", "--no-deps", "-r", str(ROOT / "requirements" / "wheels.txt"))

KEPT: Final = frozenset(
    (
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_KEYRING_PROVIDER"),
        *("PIP_CONFIG_FILE", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY"),
        *("PIP_RETRIES", "PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "PIP_CACHE_DIR", "PIP_NO_CACHE_DIR"),
        *("UV_CACHE_DIR", "UV_NO_CACHE"),
    )
)
"""Variables that say where packages come from. Others, such as PIP_PLATFORM, say which."""


def main() -> None:
    """Exit code 2 if the folder is not one, 1 if a wheel cannot be built or downloaded."""
    parser = argparse.ArgumentParser(
        description="Build the wheels of the packages and download those they need."
    )
    parser.add_argument("folder", help="where to")
    parser.add_argument("packages", nargs="+", help="folders with a pyproject.toml")
    asked = parser.parse_args()
    if not asked.folder:
        parser.error("the folder is empty: name one, such as DIST=dist")
    folder = Path(asked.folder)
    if folder.exists() and not folder.is_dir():
        parser.error(f"{folder} is not a folder")
    BUILD.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="dist-") as work:
            build(Path(work), asked.packages, undisturbed(os.environ))
            move(sorted(Path(work).glob("*.whl")), folder)
    except subprocess.CalledProcessError as error:
        sys.exit(f"make wheels: {error.cmd[0]} failed, see above; {folder} is unchanged")
    except OSError as error:
        sys.exit(f"make wheels: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"{len(list(folder.glob('*.whl')))} wheels in {folder}")


def undisturbed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that would change what is built."""
    return {
        name: value
        for name, value in environment.items()
        if name in KEPT or not name.startswith(("PIP_", "UV_", "PYTHON"))
    }


def build(work: Path, packages: Iterable[str], environment: Mapping[str, str]) -> None:
    """Fills the folder. Raises CalledProcessError, OSError."""
    build_packages(work, packages, environment)
    download(LOCKED, CACHE, work, environment)


def build_packages(work: Path, packages: Iterable[str], environment: Mapping[str, str]) -> None:
    """Writes a wheel of each package into a folder. Raises CalledProcessError, OSError."""
    ours = ["--wheel", "--no-build-isolation", "--python", sys.executable, "--no-create-gitignore"]
    uv = str(Path(sys.executable).with_name("uv"))
    for package in packages:
        command = [uv, "build", "--quiet", "--no-config", *ours, "--out-dir", str(work), f"./{package}"]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)


def download(selection: Sequence[str], cache: Path, work: Path, environment: Mapping[str, str]) -> None:
    """Writes the selected wheels into a folder. Raises CalledProcessError, OSError.

    `selection`: arguments of pip. `cache`: the folder of wheels from earlier runs.
    """
    pip = [sys.executable, "-m", *PIP, *selection]
    # Without an index where those of an earlier run have the hashes: to read what it lists is most of the work.
    copy = [*pip, "--no-index", "--find-links", str(cache), "--dest", str(work)]
    if subprocess.run(copy, env=environment, capture_output=True).returncode != 0:
        subprocess.run([*pip, "--dest", str(cache)], check=True, env=environment)
        subprocess.run(copy, check=True, env=environment)


def move(wheels: Iterable[Path], folder: Path) -> None:
    """Each of them in one step, then earlier versions of its package go. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        arriving = folder / f".{wheel.name}.{os.getpid()}"
        shutil.copyfile(wheel, arriving)
        arriving.replace(folder / wheel.name)
        for earlier in _of_package(wheel, folder):
            if earlier.name != wheel.name:
                earlier.unlink(missing_ok=True)


def _of_package(wheel: Path, folder: Path) -> Iterator[Path]:
    name = wheel.name.partition("-")[0].lower()
    return (one for one in folder.glob("*.whl") if one.name.partition("-")[0].lower() == name)


if __name__ == "__main__":
    main()
