"""`make test-compatibility`: run the kit with components of this version and the version before, and print a table.

The version before is a commit (`support.versions`). A kit installs the CRDs and the manifest of core of its own
version. The selector has the version of core, unless it is the subject. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import ROOT
from support.versions import extract, import_path

HERE: Final = "this"
BEFORE: Final = "before"


@dataclass(frozen=True)
class Column:
    """The versions of kit, core and subject."""

    kit: str
    core: str
    subject: str

    def __str__(self) -> str:
        return f"kit {self.kit}, core {self.core}, subject {self.subject}"


COLUMNS: Final = (
    Column(HERE, HERE, BEFORE),
    Column(HERE, BEFORE, HERE),
    Column(BEFORE, BEFORE, HERE),
    Column(BEFORE, HERE, BEFORE),
)

PROVIDER: Final = (
    "provider --functions kubefoundry_{name}.provider:with_defaults "
    "--manifest {tree}/manifests/providers/{name}.yaml --cases {tree}/providers/{name}/cases.yaml"
)
SUBJECTS: Final = {
    "direct": PROVIDER,
    "kuberay": f"{PROVIDER} --crd {{tree}}/dev/simulators/crds/{{name}}.yaml",
    "selector": "selector --manifest {tree}/manifests/provider-selector.yaml",
}
"""Arguments of the kit. `tree` is the sources of the subject's version."""


def main() -> int:
    """Run every cell of the table, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="kubefoundry-compatibility-") as name:
        folder = Path(name)
        trees = {HERE: ROOT, BEFORE: extract(folder / "before")}
        print(f"| subject | {' | '.join(map(str, COLUMNS))} |\n|---|{'---|' * len(COLUMNS)}", flush=True)
        failed = False
        for subject in SUBJECTS:
            results = [run(subject, column, trees, folder) for column in COLUMNS]
            failed = failed or not all(ok for ok, _ in results)
            print(f"| {subject} | {' | '.join(summary for _, summary in results)} |", flush=True)
    return int(failed)


def run(subject: str, column: Column, trees: Mapping[str, Path], folder: Path) -> tuple[bool, str]:
    """Run the kit, and return whether the subject conforms, and the summary of the report."""
    environment = folder / f"{subject} {column}".replace(" ", "-").replace(",", "")
    program = "kubefoundry-selector" if subject == "selector" else f"kubefoundry-provider-{subject}"
    others = dict.fromkeys(("kubefoundry-core", "kubefoundry-selector"), trees[column.core])
    python = shadow(environment, {**others, program: trees[column.subject]})
    words = SUBJECTS[subject].format(name=subject, tree=trees[column.subject]).split()
    report = environment / "report.json"
    # The subject's functions run inside the kit, with the SDK of the kit.
    own = [str(trees[column.subject] / "providers" / subject / "src")]
    paths = os.pathsep.join([*own, import_path(trees[column.kit])])
    done = subprocess.run(
        [str(python), "-m", "kubefoundry_conformance", *words, "--json", str(report)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
    text = report.read_text() if report.exists() else ""
    return done.returncode == 0, json.loads(text)["summary"] if text else "the kit wrote no report"


def shadow(folder: Path, programs: Mapping[str, Path]) -> Path:
    """Create a virtual environment with the packages of this one whose programs run these sources; return its python.

    The kit starts core and the subject from the folder of its own interpreter.
    """
    here = Path(sys.prefix)
    (folder / "bin").mkdir(parents=True)
    for name in ("pyvenv.cfg", "lib"):
        (folder / name).symlink_to(here / name)
    for name, tree in programs.items():
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{import_path(tree)}" exec "{here}/bin/{name}" "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    python = folder / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    return python


if __name__ == "__main__":
    sys.exit(main())
