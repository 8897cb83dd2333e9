"""What a third party gets: wheels that install without network or checkout (`make wheels`)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest
import yaml

from kubefoundry_local.suite import Suite
from support.suites import running_suite

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).resolve().parents[2]
UNREACHABLE: Final = (
    "NewConnectionError",
    "Could not fetch",
    "Temporary failure",
    "No matching distribution",
)
"""What pip says without a package index."""


DISTURBING: Final = {"PIP_PLATFORM": "win_amd64", "PIP_PYTHON_VERSION": "3.13", "UV_WORKING_DIRECTORY": "/"}
"""Would change what is built."""

EARLIER, ANOTHER = "kubefoundry_sdk-0.0.9-py3-none-any.whl", "acme-1.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make wheels` fills, with two wheels in it before."""
    folder = tmp_path_factory.mktemp("with a space")
    for name in (EARLIER, ANOTHER):
        (folder / name).touch()
    shadowing = tmp_path_factory.mktemp("shadowing")
    (shadowing / "hatchling.py").touch()
    made = subprocess.run(
        ["make", "--no-print-directory", "wheels", f"DIST={folder}"],
        cwd=ROOT,
        env={**os.environ, **DISTURBING, "PYTHONPATH": str(shadowing)},
        capture_output=True,
        text=True,
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
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "KUBEFOUNDRY"))
    }
    done = subprocess.run(
        [str(python), *arguments], cwd=python.parents[2], env=kept, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_package_has_a_wheel(wheels: Path) -> None:
    named = {tomllib.loads(path.read_text())["project"]["name"] for path in ROOT.glob("**/pyproject.toml")}
    built = {wheel.name.partition("-")[0] for wheel in wheels.glob("*.whl")}

    ours = {name.replace("-", "_") for name in named if name.startswith("kubefoundry-")}
    assert ours - built == {"kubefoundry_workspace"}


def test_earlier_ones_go_and_those_of_others_stay(wheels: Path) -> None:
    assert not (wheels / EARLIER).exists()
    assert (wheels / ANOTHER).exists()


def test_template_has_the_files_of_git(wheels: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "."],
        cwd=ROOT / "examples" / "provider",
        capture_output=True,
        text=True,
        check=True,
    )
    (wheel,) = wheels.glob("kubefoundry_cli-*.whl")

    packed = {
        name.partition("/new/provider/")[2] for name in ZipFile(wheel).namelist() if "/new/provider/" in name
    }

    # What else lies there, such as dist/ for an image or a file with secrets, is in no wheel.
    assert packed == set(tracked.stdout.split())


@pytest.mark.parametrize(
    ("folder", "packages", "code", "said"),
    [
        pytest.param("", ["sdk"], 2, "the folder is empty: name one", id="no folder"),
        pytest.param("README.md", ["sdk"], 2, "README.md is not a folder", id="a file"),
        pytest.param("dist", ["sdk", "no-such-package"], 1, "dist is unchanged", id="a package that fails"),
    ],
)
def test_failed_build_changes_no_file(
    folder: str, packages: list[str], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "dist").mkdir()
    for path in ("README.md", f"dist/{EARLIER}"):
        (tmp_path / path).write_text("before")

    ended = subprocess.run(
        [sys.executable, ROOT / "requirements" / "build_wheels.py", folder, *packages],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "README.md",
        f"dist/{EARLIER}",
    }


def test_sdk_alone_has_all_that_a_process_needs(wheels: Path, tmp_path: Path) -> None:
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
def test_extra_installs_its_packages(wheels: Path, tmp_path: Path, extra: str, program: str) -> None:
    python = environment(tmp_path, wheels, f"kubefoundry-sdk[{extra}]")

    run(python, "-W", "ignore", "-c", program)


def test_command_line_finds_the_providers(wheels: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheels, "kubefoundry-cli[providers]")

    reported = run(
        python, "-c", "from kubefoundry_cli.providers import installed; print(sorted(installed()))"
    )

    assert reported.strip() == "['direct', 'dynamo', 'kaito', 'kuberay']"


@pytest.fixture(scope="module")
def vendor(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a vendor has after `provider new`: an environment, and the package in a folder of its own."""
    folder = tmp_path_factory.mktemp("vendor")
    python = environment(
        folder, wheels, "kubefoundry-cli", "kubefoundry-conformance", "kubefoundry-sdk[testing]"
    )
    command = [str(python.with_name("kubefoundry")), "provider", "new", "acme-llm", "--group", "acme.io"]
    reported = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "wrote " in reported.stderr
    install = [
        str(Path(sys.executable).with_name("uv")),
        "--quiet",
        "--no-config",
        "--offline",
        "pip",
        "install",
    ]
    where = ["--python", str(python), "--no-index", "--find-links", str(wheels)]
    subprocess.run([*install, *where, f"{folder / PACKAGE}[test]"], check=True, cwd=folder)
    return folder


PACKAGE: Final = "kubefoundry-provider-acme-llm"


def test_new_provider_passes_its_tests_at_once(vendor: Path) -> None:
    python = vendor / "venv" / "bin" / "python"

    reported = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(vendor / PACKAGE / "tests"))

    assert "100%" in reported
    assert "--leader-elect" in run(python, str(python.with_name(PACKAGE)), "--help")


def test_manifest_of_a_new_provider_is_generated(vendor: Path) -> None:
    python = vendor / "venv" / "bin" / "python"
    command = [
        str(python.with_name("kubefoundry")),
        "provider",
        "manifest",
        "acme-llm",
        "--image",
        "r.io/x:1",
    ]

    made = list(yaml.safe_load_all(run(python, *command)))

    stored = list(yaml.safe_load_all((vendor / PACKAGE / "manifest.yaml").read_text()))
    assert [one for one in made if one["kind"] != "Deployment"] == [
        one for one in stored if one["kind"] != "Deployment"
    ]
    [deployment] = [one for one in made if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "r.io/x:1"


def test_new_provider_has_no_name_of_the_example(vendor: Path) -> None:
    for file in (vendor / PACKAGE).rglob("*"):
        assert "widget" not in str(file.relative_to(vendor)).lower()
        if file.is_file() and file.suffix != ".pyc" and "build" not in file.parts:
            assert not re.search(r"widget|example\.com", file.read_text(), re.I), file


def test_image_of_a_new_provider_needs_wheels_only(vendor: Path, wheels: Path, tmp_path: Path) -> None:
    recipe = (vendor / PACKAGE / "Dockerfile").read_text()
    context = tmp_path / "context"
    for source, target in re.findall(r"^COPY (?!--from)(\S+) (\S+)$", recipe, re.M):
        origin = wheels if source == "dist/" else vendor / PACKAGE / source
        copied = context / target.strip("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if origin.is_dir() else shutil.copy)(origin, copied)
    [command] = re.findall(r"^RUN (.*)$", recipe.replace("\\\n", " "), re.M)
    for path in ("/dist", "/src", "/opt/provider"):
        command = re.sub(rf"(?<=\s){path}\b", str(context) + path, command)

    # the interpreter that runs the tests stands for the one of the base image, and so does its pip
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", command], check=True, cwd=tmp_path, env={**os.environ, "PATH": path})

    assert (context / "opt" / "provider" / "bin" / PACKAGE).exists()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Suite]:
    """Core on a control plane; not `fresh`, which would have a worker of its own build the wheels once more."""
    with running_suite(tmp_path) as made:
        made.start("core")
        yield made


def test_new_provider_passes_the_kit_without_a_checkout(vendor: Path, running: Suite) -> None:
    """Functions, then its process in a cluster with KubeFoundry."""
    python = vendor / "venv" / "bin" / "python"
    package = vendor / PACKAGE
    files = ["--crd", str(package / "acme-llm.crd.yaml"), "--cases", str(package / "cases.yaml")]
    kit = [str(python.with_name("kubefoundry-conformance")), "provider", *files]

    functions = run(python, *kit, "--functions", "acme-llm")
    process = run(
        python,
        *kit,
        *("--manifest", str(package / "manifest.yaml"), "--kubeconfig", str(running.plane.kubeconfig)),
    )

    assert re.search(r"^\d\d passed, 0 failed", functions, re.M), functions
    assert re.search(r"^\d\d passed, 0 failed", process, re.M), process


def test_conformance_without_a_cluster_needs_the_checkout(vendor: Path) -> None:
    package = vendor / PACKAGE
    command = [str(vendor / "venv/bin/kubefoundry-conformance"), "provider"]
    files = {"manifest": "manifest.yaml", "crd": "acme-llm.crd.yaml", "cases": "cases.yaml"}
    for option, file in files.items():
        command += [f"--{option}", str(package / file)]

    done = subprocess.run(command, cwd=vendor, capture_output=True, text=True)

    assert done.returncode == 2
    assert "from a checkout of KubeFoundry" in done.stderr
    assert "--kubeconfig" in done.stderr
