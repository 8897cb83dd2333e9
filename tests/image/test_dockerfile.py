"""The Dockerfile without an engine: its first stage step by step in a folder, then the command of its last stage."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import source_from_cache
from pathlib import Path

import pytest
from images import layers, wheels
from images.components import components
from images.interpreter import machine
from images.tree import File

from kubefoundry_sdk._api.build import describe

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = "/opt/"
"""Below it is where the Dockerfile installs to: the one path that is substituted."""
CERTIFICATES = {"SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
OF_INSTALLER = {
    "RECORD",
    "INSTALLER",
    "REQUESTED",
    "direct_url.json",
    "uv_cache.json",
    "_virtualenv.py",
    "_virtualenv.pth",
}
"""Files that an installer writes beside those of the wheels."""

LISTED = "import importlib.metadata as m; print(*(one.name for one in m.distributions()))"


@dataclass(frozen=True, slots=True)
class Image:
    """What the steps left: where the environment is, the variables, and the command of the last stage."""

    environment: Path
    variables: dict[str, str]
    command: list[str]


def instructions() -> Iterator[tuple[str, str]]:
    """Instruction and its arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def expand(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: variables.get(match[1], ""), text)


def in_context(path: str) -> bool:
    """Whether .dockerignore, which leaves out everything, lets the folder's top in again."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    return f"!{Path(path).parts[0]}" in lines


def build(folder: Path, arguments: dict[str, str]) -> Image:
    """Performs the instructions; a stage's ARG takes its value from `arguments`. Raises CalledProcessError."""
    installed, source = f"{folder / 'opt'}/", folder / "src"
    source.mkdir()
    # the interpreter that runs the tests stands for the one of the base image
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables: dict[str, str] = {}
    command: list[str] = []
    for name, rest in instructions():
        match name:
            case "FROM":
                variables = {"PATH": path}
            case "ARG":
                key, _, default = rest.partition("=")
                variables[key] = arguments.get(key) or expand(default, variables)
            case "COPY" if not rest.startswith("--from"):
                origin, target = expand(rest, variables).split()
                assert in_context(origin), f".dockerignore keeps {origin} out of the context"
                shutil.copytree(ROOT / origin, source / target)
            case "RUN":
                subprocess.run(
                    ["sh", "-c", rest.replace(INSTALLED, installed)],
                    cwd=source,
                    env={**outside(), **variables},
                    check=True,
                )
            case "ENV":
                for pair in rest.replace(INSTALLED, installed).split():
                    key, _, value = pair.partition("=")
                    variables[key] = expand(value, variables)
            case "CMD":
                command = json.loads(rest)
            case _:
                assert name in {"WORKDIR", "USER", "COPY"}, f"the test does not know {name}"
    return Image(folder / "opt" / "kubefoundry", variables, command)


def outside() -> dict[str, str]:
    """Return this machine's variables without those that name certificates: a build has the base image's only."""
    return {key: value for key, value in os.environ.items() if key not in CERTIFICATES}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param({"COMPONENT": "selector"}, id="selector"),
        pytest.param({"COMPONENT": "provider-kaito", "FOLDER": "providers/kaito"}, id="provider-kaito"),
        pytest.param({"COMPONENT": "llamastack"}, id="llamastack"),
    ],
)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return build(tmp_path_factory.mktemp("image"), {**request.param, "COMMIT": describe(ROOT)})


def run(image: Image, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=image.variables, capture_output=True, text=True, check=False)


def test_components_program_is_there(image: Image) -> None:
    program = f"kubefoundry-{image.variables['COMPONENT']}"

    done = run(image, program, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {program} ")
    assert (image.environment / "bin" / program).is_file()


def test_image_has_only_the_packages_of_a_pod(image: Image) -> None:
    packages = set(run(image, "python", "-c", LISTED).stdout.split())

    # of our own packages the SDK and the component; nothing that reads kubeconfigs, installs or builds
    assert len([name for name in packages if name.startswith("kubefoundry-")]) == 2
    assert "aiohttp" in packages
    assert not packages & {"kubernetes", "pip", "uv", "hatchling"}


def test_argument_for_traces_adds_opentelemetry(tmp_path: Path) -> None:
    image = build(tmp_path, {"COMPONENT": "selector", "TRACES": "1"})

    packages = set(run(image, "python", "-c", LISTED).stdout.split())

    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"} <= packages


def test_image_modules_are_compiled(image: Image) -> None:
    sources = set((image.environment / "lib").rglob("*.py"))
    compiled = {Path(source_from_cache(str(path))) for path in (image.environment / "lib").rglob("*.pyc")}

    assert sources
    assert not sources - compiled


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the wheels of another Python are other files")
def test_make_images_has_the_same_packages(image: Image) -> None:
    component = components()[image.variables["COMPONENT"]]
    home = image.environment / "lib" / f"python{wheels.PYTHON}" / "site-packages"
    installed = {
        f"{wheels.SITE}/{path.relative_to(home)}": path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path.name not in OF_INSTALLER
    }

    own = list(wheels.build(component.packages).values())
    others = wheels.of_lock(wheels.download([component.lock], machine()), component.lock)
    trees = {**layers.dependencies(others), **layers.own(own, component.program)}

    contents = {
        path: entry.content
        for path, entry in trees.items()
        if path.startswith(wheels.SITE) and isinstance(entry, File)
    }
    assert contents.keys() == installed.keys()
    assert [path for path, content in contents.items() if installed[path] != content] == []


def test_image_default_command_starts_the_component(image: Image) -> None:
    done = run(image, *image.command)

    assert done.returncode == 1
    assert done.stderr.startswith(f"kubefoundry-{image.variables['COMPONENT']}: no usable kubeconfig: ")
