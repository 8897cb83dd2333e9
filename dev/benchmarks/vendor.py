"""`python -m benchmarks.vendor`: time a vendor's way to a checked provider, from the wheels to the kit's report.

The vendor has no checkout: all but the wheels and the cluster is in a temporary folder, with a virtual environment of
its own and without a package index. Prints the seconds of each step, and the lines of each file of the new package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import ROOT, CannotRun, control_plane
from kubefoundry_local.suite import Suite

NAME: Final = "acme-llm"
PACKAGE: Final = f"kubefoundry-provider-{NAME}"
FROM_WHEELS: Final = ("kubefoundry-cli", "kubefoundry-conformance", "kubefoundry-sdk[testing,kubeconfig]")
LENGTH: Final = 60
"""Characters of a step's last line in the table, at most."""


class Failed(Exception):
    """A step failed. The text has its title and its output."""


def main() -> int:
    """Run all steps, and print their times."""
    with tempfile.TemporaryDirectory(prefix="kubefoundry-vendor-") as folder:
        try:
            steps = _walk(Path(folder))
        except (Failed, CannotRun) as error:
            print(f"benchmarks.vendor: {error}", file=sys.stderr)
            return 1
        print("| step | s | last line |\n|---|---|---|")
        for title, seconds, outcome in steps:
            print(f"| {title} | {seconds:.1f} | {outcome} |")
        print(f"| all | {sum(seconds for _, seconds, _ in steps):.1f} | |\n\n| file | lines |\n|---|---|")
        for file, lines in _lines(Path(folder) / PACKAGE):
            print(f"| {file} | {lines} |")
    return 0


def _walk(folder: Path) -> list[tuple[str, float, str]]:
    """Run all steps, and return title, seconds and last line of each. Raise Failed or CannotRun."""
    steps: list[tuple[str, float, str]] = []

    def step(title: str, *command: str | Path, where: Path = folder) -> str:
        began = time.perf_counter()
        done = subprocess.run(
            [str(part) for part in command], cwd=where, env=_environment(), capture_output=True, text=True
        )
        if done.returncode:
            raise Failed(f"{title}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        output = (done.stdout.strip() or done.stderr.strip()).splitlines()
        steps.append((title, time.perf_counter() - began, output[-1].strip()[:LENGTH] if output else ""))
        return done.stdout

    wheels, package = folder / "dist", folder / PACKAGE
    programs = folder / "venv" / "bin"
    install = (programs / "pip", "install", "--quiet", "--no-index", "--find-links", wheels)
    files = ("--crd", package / f"{NAME}.crd.yaml", "--cases", package / "cases.yaml")
    kit = (programs / "kubefoundry-conformance", "provider")
    step("wheels", "make", "--no-print-directory", "wheels", f"DIST={wheels}", where=ROOT)
    step("virtual environment", sys.executable, "-m", "venv", folder / "venv")
    step("install", *install, *FROM_WHEELS, "pytest")
    step("new provider", programs / "kubefoundry", "provider", "new", NAME, "--group", "acme.io")
    step("install it", *install, f"{package}[test]")
    step("its tests", programs / "pytest", "-q", "-p", "no:cacheprovider", package / "tests")
    manifest = step(
        "its manifest", programs / "kubefoundry", "provider", "manifest", NAME, "--image", "registry.example.com/x:1"
    )  # fmt: skip
    (folder / "manifest.yaml").write_text(manifest, encoding="utf-8")
    step("the kit on its functions", *kit, "--functions", NAME, *files)
    with control_plane(folder / "plane") as plane:
        suite = Suite(plane, folder / "suite")
        try:
            suite.install_ground()
            suite.start("core")
            cluster = ("--kubeconfig", plane.kubeconfig)
            step("the kit on its process", *kit, "--manifest", folder / "manifest.yaml", *files, *cluster)
        finally:
            suite.stop()
    return steps


def _environment() -> dict[str, str]:
    """Return the environment without the variables of the checkout."""
    dropped = ("PYTHON", "VIRTUAL_ENV", "KUBEFOUNDRY", "MAKE")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


def _lines(package: Path) -> Sequence[tuple[str, int]]:
    """Return the number of lines of each file that a vendor edits."""
    suffixes = (".py", ".yaml", ".toml", ".md")
    files = [
        file
        for file in sorted(package.rglob("*"))
        if (file.suffix in suffixes or file.name == "Dockerfile")
        and not {"build", "__pycache__"} & set(file.relative_to(package).parts)
        and not any(part.endswith(".egg-info") for part in file.parts)
    ]
    return [(str(file.relative_to(package)), len(file.read_text().splitlines())) for file in files]


if __name__ == "__main__":
    sys.exit(main())
