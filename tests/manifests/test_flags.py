"""Commands and arguments of the manifests are those of the installed console scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubefoundry_demo.suite import COMPONENTS, manifest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_console_script_knows_its_arguments(name: str) -> None:
    [deployment] = [document for document in manifest(name) if document["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [command] = container["command"]

    # Arguments are read in order, so a wrong value before --help is still refused.
    done = subprocess.run(
        [Path(sys.executable).parent / command, *container["args"], "--help"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for argument in container["args"]:
        assert f"{argument.partition('=')[0]} " in done.stdout
