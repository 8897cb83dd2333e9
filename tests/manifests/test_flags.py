"""Commands and arguments of the manifests are those of the installed console scripts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubefoundry_local.suite import COMPONENTS, OPT_IN, manifest

pytestmark = pytest.mark.integration


ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
OF_ONE_PROVIDER = {"--runtime-version", "--ray-version", "--mirror"}
"""Flags that only that provider's README explains, those with its name in them apart."""


@pytest.mark.parametrize("name", [*COMPONENTS, *OPT_IN])
def test_console_script_knows_its_arguments(name: str) -> None:
    [deployment] = [document for document in manifest(name) if document["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [command] = container["command"]

    # Arguments are read in order, so a wrong value before --help is still refused.
    done = subprocess.run(
        [BIN / command, *container["args"], "--help"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for argument in container["args"]:
        assert f"{argument.partition('=')[0]} " in done.stdout


def test_contract_lists_every_flag() -> None:
    known: set[str] = set()
    for name in COMPONENTS:
        program = manifest(name)[0]["metadata"]["name"]
        usage = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, check=True).stdout
        known |= {
            flag for flag in re.findall(r"^  (--[\w-]+)", usage, flags=re.M) if f"--{name}-" not in flag
        }

    listed = re.findall(r"^\| `(--[\w-]+)` \| `KUBEFOUNDRY_", (ROOT / "docs/contract.md").read_text(), re.M)
    assert set(listed) == known - OF_ONE_PROVIDER
