"""The start of the command line as a single file: the zip file's `__main__.py`.

Python cannot import compiled modules from a zip file. The first start unpacks the packages into the user's cache.
"""

import os
import platform
import sys
import tempfile
import zipfile
from pathlib import Path

GLIBC = (2, 28)
"""The oldest C library that runs the packages (`single_file.GLIBC`)."""


def check_library() -> None:
    """Exit if the packages cannot be imported with this C library."""
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) < GLIBC:
        has = f"{name} {version}".strip() or "another C library"
        sys.exit(
            f"kubefoundry: this file needs glibc {GLIBC[0]}.{GLIBC[1]} or newer, and this system has {has}; "
            "start it on another system"
        )


def unpacked(file: Path) -> Path:
    """Return the folder with the packages for this Python, and unpack it if it is missing."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
        tags = sorted({name.partition("/")[0] for name in names if name.startswith("cp")})
        if platform.system() != "Linux" or tag not in tags:
            sys.exit(
                f"kubefoundry: this file has no packages for {platform.system()} {tag}; it has {', '.join(tags)}. "
                "Start it with another Python, or install the wheels of the release"
            )
        check_library()
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubefoundry"
        folder = cache / f"cli-{archive.read('content').decode()}-{tag}"
        if folder.is_dir():
            return folder
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="cli-") as work:
            complete = extracted(archive, tag, Path(work))
            try:
                complete.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    return folder


def extracted(archive: zipfile.ZipFile, tag: str, work: Path) -> Path:
    """Extract the packages for any Python and those for this one into one folder, and return it."""
    complete, specific = work / "any", work / tag
    archive.extractall(work, [name for name in archive.namelist() if name.startswith(("any/", f"{tag}/"))])
    for path in sorted(specific.rglob("*")):
        if path.is_file():
            target = complete / path.relative_to(specific)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    return complete


def main() -> None:
    """Run the command line."""
    file = Path(__file__).parent
    try:
        folder = unpacked(file)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        sys.exit(
            f"kubefoundry: {file.name} cannot unpack its packages: {error}; set XDG_CACHE_HOME to another folder"
        )
    sys.path[0] = str(folder)
    from kubefoundry_cli.main import main as command_line

    command_line()


main()
