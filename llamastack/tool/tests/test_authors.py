"""Tests `lint` and `init`, which a provider's author runs before any cluster."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from llamastack_providers import scaffold
from support.provider_images import image, spec, wheel, write_spec
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "llamastack"


def test_lint_passes_valid_folder(pod: Pod, tmp_path: Path) -> None:
    ended = pod.call("lint", str(image(tmp_path / "echo", requires=["pydantic>=2"])))

    assert ended.code == 0, ended.log
    assert (
        "acme-echo requires pydantic>=2, which is not in packages/: the distribution must have it"
        in ended.log
    )


WRONG: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "nothing there": (lambda folder: (folder / "lls-provider-spec.yaml").unlink(), ("MissingSpec",)),
    "several fields": (
        lambda folder: write_spec(folder, spec(kind="x", spec__api="y", metadata__version="1")),
        ("InvalidSpec", "kind:", "spec.api:", "metadata.version:"),
    ),
    "no provider module": (
        lambda folder: write_spec(folder, spec(spec__packageName="other")),
        ("SpecFunction", "no module other.provider"),
    ),
    "no get_provider_spec": (
        lambda folder: wheel(folder / "packages", "acme-echo", files={"acme_echo/provider.py": "x = 1"}),
        ("SpecFunction", "acme_echo/provider.py defines no get_provider_spec"),
    ),
    "a provider module that is no Python": (
        lambda folder: wheel(folder / "packages", "acme-echo", files={"acme_echo/provider.py": "x =\n"}),
        ("ImportFailed", "acme_echo/provider.py, line 1"),
    ),
    "a conflict": (
        lambda folder: (
            wheel(folder / "packages", "a", requires=["b>2"]),
            wheel(folder / "packages", "b", requires=["a>2"]),
        ),
        ("DependencyConflict", "a 1.0.0 of this image requires b>2"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_lint_reports_each_defect(pod: Pod, tmp_path: Path, name: str) -> None:
    folder = image(tmp_path / "echo")
    change, phrases = WRONG[name]
    change(folder)

    ended = pod.call("lint", str(folder))

    assert ended.code == 1, ended.log
    for phrase in (*phrases, "Resolution: ", "cannot be installed"):
        assert phrase in ended.log


def test_lint_warns_when_result_depends_on_image(pod: Pod, tmp_path: Path) -> None:
    folder = image(tmp_path / "echo")
    wheel(folder / "packages", "native", tag="cp27-cp27m-any")

    ended = pod.call("lint", str(folder))

    assert ended.code == 0
    assert "warning: WrongPlatform" in ended.log


@pytest.mark.parametrize(("api", "service"), [*((api, False) for api in scaffold.APIS), ("inference", True)])
def test_init_sources_can_be_built_and_installed(pod: Pod, tmp_path: Path, api: str, service: bool) -> None:
    folder = tmp_path / "new"
    option = ["--service"] if service else []
    described = {"service": {"mode": "Sidecar", "transport": "TCP"}} if service else {}

    written = pod.call("init", str(folder), "--name", "my-own", "--api", api, *option)

    assert written.code == 0, written.log
    for path in folder.rglob("*.py"):
        ast.parse(path.read_text())
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*build, "-w", folder / "packages", folder], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pod.call("lint", str(folder)).code == 0
    ended = pod.install(folder, "mine", api=api, **described)
    assert ended.code == 0, ended.log
    about = yaml.safe_load((pod.places.metadata / "mine" / "lls-provider-spec.yaml").read_text())
    assert f"{about['spec']['packageName']}/provider.py" in pod.installed()


@pytest.mark.parametrize(
    ("name", "exists", "code"), [("My_Own", False, 2), ("a-", False, 2), ("mine", True, 1)]
)
def test_init_refuses_unusable_folder(pod: Pod, tmp_path: Path, name: str, exists: bool, code: int) -> None:
    folder = tmp_path / "new"
    if exists:
        folder.mkdir()
        (folder / "kept").write_text("")

    assert pod.call("init", str(folder), "--name", name).code == code
    assert not (folder / "pyproject.toml").exists()


def test_init_refuses_service_of_other_api(pod: Pod, tmp_path: Path) -> None:
    ended = pod.call("init", str(tmp_path / "new"), "--name", "my-own", "--api", "safety", "--service")

    assert ended.code == 2
    assert "--service writes a provider only with --api inference" in ended.log
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("api", "name", "service"),
    [
        ("inference", "acme-echo", False),
        ("safety", "acme-guard", False),
        ("inference", "acme-shout", True),
    ],
)
def test_examples_match_init(api: str, name: str, service: bool) -> None:
    folder = EXAMPLES / name
    examples = {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }

    assert examples == dict(scaffold.sources(api, name, service=service)), (
        "out of date: see examples/llamastack/README.md"
    )
