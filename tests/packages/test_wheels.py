"""What a third party gets: wheels that install without network or checkout (`make wheels`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).resolve().parents[2]
UNREACHABLE: Final = (
    "NewConnectionError",
    "Could not fetch",
    "Temporary failure",
    "No matching distribution",
)
"""What pip says without a package index."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make wheels` fills."""
    folder = tmp_path_factory.mktemp("wheels")
    made = subprocess.run(
        ["make", "--no-print-directory", "wheels", f"DIST={folder}"], cwd=ROOT, capture_output=True, text=True
    )
    if made.returncode and any(word in made.stderr for word in UNREACHABLE):
        pytest.skip("needs a package index for the wheels of others")
    assert made.returncode == 0, made.stderr
    return folder


def environment(folder: Path, wheels: Path, *packages: str) -> Path:
    """A fresh virtual environment outside the checkout, without an index; its Python."""
    python = folder / "venv" / "bin" / "python"
    uv = [str(Path(sys.executable).with_name("uv")), "--quiet", "--no-config", "--offline"]
    subprocess.run([*uv, "venv", "--python", sys.executable, folder / "venv"], check=True, cwd=folder)
    install = [*uv, "pip", "install", "--python", str(python), "--no-index", "--find-links", str(wheels)]
    subprocess.run([*install, *packages], check=True, cwd=folder)
    return python


def run(python: Path, *arguments: str) -> str:
    """What it prints, in the folder of its environment and with nothing of the checkout on its path."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBEFOUNDRY"))
    }
    done = subprocess.run(
        [str(python), *arguments], cwd=python.parents[2], env=kept, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_a_wheel_of_every_package(wheels: Path) -> None:
    named = {tomllib.loads(path.read_text())["project"]["name"] for path in ROOT.glob("**/pyproject.toml")}
    built = {wheel.name.partition("-")[0] for wheel in wheels.glob("*.whl")}

    ours = {name.replace("-", "_") for name in named if name.startswith("kubefoundry-")}
    assert ours - built == {"kubefoundry_workspace"}


def test_the_sdk_alone_has_all_that_a_process_needs(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheels, "kubefoundry-sdk")

    assert "--heartbeat-timeout" in run(
        python,
        "-c",
        "import kubefoundry_sdk; kubefoundry_sdk.run('x', lambda options: None, arguments=['--help'])",
    )
    assert "site-packages" in run(python, "-c", "import kubefoundry_sdk; print(kubefoundry_sdk.__file__)")


@pytest.mark.parametrize(
    ("extra", "program"),
    [
        ("testing", "from kubefoundry_sdk.testing import specs; specs().example()"),
        ("kopf", "import kopf"),
        ("kubeconfig", "import kubernetes"),
    ],
)
def test_an_extra_brings_what_it_says(wheels: Path, tmp_path: Path, extra: str, program: str) -> None:
    python = environment(tmp_path, wheels, f"kubefoundry-sdk[{extra}]")

    run(python, "-W", "ignore", "-c", program)


def test_the_command_line_finds_the_providers(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheels, "kubefoundry-cli[providers]")

    told = run(python, "-c", "from kubefoundry_cli.providers import installed; print(sorted(installed()))")

    assert told.strip() == "['direct', 'dynamo', 'kaito', 'kuberay']"
