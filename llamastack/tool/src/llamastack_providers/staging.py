"""pip unpacks the wheels into a folder of their own; nothing that is installed already is touched by it.

Why pip does not install into the target itself: it takes the first of two versions, and one of two providers in a
namespace package, for success (facts/llamastack.md §5, seen with pip 23.2 and 26.3).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from llamastack_providers.errors import Code, Failure


def fresh(staging: Path) -> None:
    """An empty staging folder, whatever a killed run left there. Raises OSError."""
    clear(staging)
    for part in ("packages", "tmp"):
        (staging / part).mkdir(parents=True)


def clear(staging: Path) -> None:
    """No staging folder. Raises OSError."""
    if staging.exists():
        shutil.rmtree(staging)


def unpack(wheels: Sequence[Path], staging: Path) -> Path:
    """The folder with what is in the wheels, as pip installs it. Raises PipMissing, PipFailed, OSError."""
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
    # pip writes its errors to stderr and what explains them to stdout
    done = subprocess.run(
        command, env=_environment(staging), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    print(output, end="", flush=True)
    if done.returncode:
        raise Failure(
            Code.PipFailed, _last_error(output) or f"pip ended with {done.returncode}", detail=output
        )
    return target


def _environment(staging: Path) -> dict[str, str]:
    """The container's, without what configures pip or Python, and with places that any user may write to."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
    places = {"HOME": str(staging / "tmp"), "TMPDIR": str(staging / "tmp"), "PIP_CONFIG_FILE": os.devnull}
    return {**kept, **places, "LC_ALL": "C.UTF-8"}


def _last_error(output: str) -> str:
    errors = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    return errors[-1] if errors else ""
