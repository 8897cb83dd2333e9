"""`make engine-options`: downloads the engines' wheels (460 MB), and writes what their servers take beside this."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engines.options import sglang, vllm

HERE: Final = Path(__file__).parent
LOCK: Final = HERE.parents[1] / "requirements" / "engines.txt"
READERS: Final[dict[str, Callable[[Path], dict[str, str]]]] = {"vllm": vllm, "sglang": sglang}
PLATFORMS: Final = tuple(f"--platform=manylinux_2_{minor}_x86_64" for minor in range(17, 36))


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        flags = ["--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version=3.12"]
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            *flags,
            *PLATFORMS,
            f"--dest={work}",
            "-r",
            str(LOCK),
        ]
        subprocess.run(command, check=True)
        for wheel in sorted(Path(work).glob("*.whl")):
            name, version, *_ = wheel.stem.split("-")
            with zipfile.ZipFile(wheel) as packed:
                sources = [
                    one for one in packed.namelist() if one.startswith(f"{name}/") and one.endswith(".py")
                ]
                packed.extractall(work, sources)
            found = READERS[name](Path(work) / name)
            for old in HERE.glob(f"{name}-*.json"):
                old.unlink()
            file = HERE / f"{name}-{version}.json"
            file.write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")
            print(f"{name} {version}: {len(found)} options -> {file.name}")


if __name__ == "__main__":
    main()
