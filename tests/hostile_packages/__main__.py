"""`make hostile-packages`: runs the tool on every hostile package, and writes docs/llamastack/hostile-packages.md.

Each is installed or checked by the processes that a pod's containers start; exit code 1 if an outcome is not the
expected one.
"""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hostile_packages.catalogue import Outcome, Package, packages
from hostile_packages.table import DOCUMENT, document, line
from llamastack_providers import zipapp
from support.hostile_images import HostileImage
from support.hostile_runs import checked, code, installed
from support.provider_pod import Ended, Pod
from support.provider_server import Server


def outcomes(folder: Path) -> Iterator[Outcome]:
    """What happens to each, in the order of the catalogue."""
    tool = folder / "tool"
    with zipfile.ZipFile(io.BytesIO(zipapp.contents())) as archive:
        archive.extractall(tool)

    def outcome(at: int, package: Package) -> Outcome:
        place = folder / str(at)
        ended = run(tool, place, package)
        named = all(word in ended.message for word in package.culprit)
        return Outcome(package, code(ended), named)

    with ThreadPoolExecutor(2) as pool:
        everything = packages()
        yield from pool.map(outcome, range(len(everything)), everything)


def run(tool: Path, place: Path, package: Package) -> Ended:
    """Installs or checks it in a pod of its own."""
    if isinstance(package.case, HostileImage):
        pod = Pod(place / "pod", tool)
        pod.shared.mkdir(parents=True)
        return installed(pod, place, package.case)
    return checked(Server(place / "pod", tool), package.case)


def main() -> int:
    """Prints a line for each, and a summary; returns the exit code."""
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for one in outcomes(Path(folder)):
            print(line(one), flush=True)
            seen.append(one)
    wrong = [one for one in seen if not one.expected]
    for one in wrong:
        print(f"NOT AS EXPECTED: {line(one)}")
    refused = [one for one in seen if one.package.case.code]
    kinds = len({one.package.kind for one in seen})
    named = sum(one.named for one in refused)
    print(
        f"{len(seen)} packages of {kinds} kinds: {len(seen) - len(wrong)} as expected, {len(wrong)} not; "
        f"{len(refused)} refused, {named} of them with their culprit named"
    )
    if not wrong:
        DOCUMENT.write_text(document(seen))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
