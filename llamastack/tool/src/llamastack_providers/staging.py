"""Unpacks wheels with pip into a separate directory, so that pip cannot touch installed files.

pip does not install into the target itself, because it reports success if it keeps the first of two versions,
or one of two providers in a namespace package (sources §5.4, seen with pip 23.2 and 26.3).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from llamastack_providers import integrity
from llamastack_providers.errors import Code, Failure

_REFUSED_MEMORY: Final = re.compile(
    r"^(?:ERROR: Could not install packages due to an )?OSError: \[Errno 12\] ", re.MULTILINE
)
"""How pip says that a system call got no memory, and a traceback; not what a provider has named so."""


def fresh(prefix: Path) -> Path:
    """Create an empty staging directory for this run.

    Removes those of killed runs if permitted, and skips another user's.

    Raises:
        OSError: The directory cannot be created.
    """
    for left in prefix.parent.glob(f"{prefix.name}*"):
        shutil.rmtree(left, ignore_errors=True)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix.name, dir=prefix.parent))
    for part in ("packages", "tmp"):
        (folder / part).mkdir()
    return folder


def clear(staging: Path) -> None:
    """Remove all staging directories."""
    shutil.rmtree(staging, ignore_errors=True)


def unpack(wheels: Sequence[Path], staging: Path) -> Path:
    """Unpack the wheels as pip installs them, and return the directory.

    Raises:
        Failure: PipMissing or PipFailed.
        OSError: A file is not writable.
    """
    if importlib.util.find_spec("pip") is None:
        raise Failure(Code.PipMissing, f"{sys.executable} has no module pip")
    target = staging / "packages"
    command = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "install",
        "--isolated",
        "--no-index",
        "--no-deps",
        "--no-compile",
    ]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"]
    command += ["--target", str(target), *map(str, wheels)]
    # pip writes its errors to stderr and their explanations to stdout
    done = subprocess.run(
        command, env=_environment(staging), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    print(output, end="", flush=True)
    if problem := _refused(done.returncode, output, wheels, staging):
        raise problem
    return target


def _refused(code: int, output: str, wheels: Sequence[Path], staging: Path) -> Failure | None:
    """Return why pip did not unpack the wheels, None if it did."""
    if code == 0:
        return None
    text = _last_error(output) or f"pip ended with {code}"
    if "[Errno 28]" in output or "No space left" in output or "[Errno 122]" in output:
        return Failure(Code.NoSpace, f"pip found no space left in {staging.parent}", detail=output)
    memory = "MemoryError" in output or _REFUSED_MEMORY.search(output)
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL) or memory:
        return Failure(
            Code.NoMemory, f"pip ended with {code}: there was not enough memory for it", detail=output
        )
    for wheel in wheels:
        if broken := integrity.broken(wheel):
            return Failure(Code.BadWheel, f"{wheel.name} is damaged: {broken}")
    return Failure(Code.PipFailed, text, detail=output)


def _environment(staging: Path) -> dict[str, str]:
    """Return the container's variables for pip.

    They have no configuration of pip or Python, and name directories that any user may write to.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
    places = {"HOME": str(staging / "tmp"), "TMPDIR": str(staging / "tmp"), "PIP_CONFIG_FILE": os.devnull}
    return {**environment, **places, "LC_ALL": "C.UTF-8"}


def _last_error(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if errors and errors[-1].strip() == "Exception:":
        # the heading of a traceback
        return f"pip crashed: {lines[-1]}"
    return errors[-1] if errors else ""
