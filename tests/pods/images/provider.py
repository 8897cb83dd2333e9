"""Provider images: sources as `llamastack-providers init` writes them, wheels that the root's own pip builds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import ROOT
from kubefoundry_nodes.images import environment, layer
from kubefoundry_nodes.kubelet.image import Image
from llamastack_providers import scaffold
from llamastack_providers.layout import PROVIDER, SPEC_FILE

EXAMPLES: Final = ROOT / "examples" / "llamastack"
HOME: Final = "/opt/build"
LOCK: Final = environment.LOCKS / "build.txt"
"""The environment of the image that builds wheels."""

ECHO: Final = "example.com/acme-echo:0.1.0"
GUARD: Final = "example.com/acme-guard:0.1.0"
"""Images of the providers of examples/llamastack."""

SHOUT: Final = "example.com/acme-shout:0.1.0"
WHISPER: Final = "example.com/acme-whisper:0.1.0"
"""Images of acme-shout, whose service is in the same image, and of a copy under another name."""

SERVICE: Final = ("python3", "/app/service.py")
"""The command of an image with a service, as its Containerfile has it."""

USER: Final = 1001
"""As the image guide's Containerfile has it."""

Files = Mapping[str, str]


def example(name: str) -> dict[str, str]:
    """The sources of a provider of examples/llamastack, by path."""
    folder = EXAMPLES / name
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def scaffolded(api: str, name: str, requires: Sequence[str] = ()) -> dict[str, str]:
    """What `init` writes, with dependencies."""
    files = dict(scaffold.sources(api, name))
    needs = ", ".join(f'"{one}"' for one in requires)
    return {
        **files,
        "pyproject.toml": files["pyproject.toml"].replace("dependencies = []", f"dependencies = [{needs}]"),
    }


def in_namespace_package(files: Files, name: str, package: str) -> dict[str, str]:
    """The sources with their package moved to a dotted name, `my_org.a`."""
    flat, top = name.replace("-", "_"), package.split(".")[0]
    made = {}
    for path, text in files.items():
        if path.endswith(".py"):
            text = text.replace(flat, package)
        text = text.replace(f"packageName: {flat}\n", f"packageName: {package}\n")
        text = text.replace(f'["src/{flat}"]', f'["src/{top}"]')
        made[path.replace(f"src/{flat}/", f"src/{package.replace('.', '/')}/")] = text
    return made


def library(name: str, version: str) -> dict[str, str]:
    """The sources of a package that providers depend on."""
    package = name.replace("-", "_")
    project = f'[project]\nname = "{name}"\nversion = "{version}"\nrequires-python = ">=3.11"\n'
    build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    return {"pyproject.toml": f"{build}{project}", f"{package}/__init__.py": f'VERSION = "{version}"\n'}


def wheels(sources: Sequence[Files], work: Path) -> list[Path]:
    """A wheel of each, in this order; built in a root of Debian's by its pip, without any network.

    Raises RuntimeError with what pip said.
    """
    for number, files in enumerate(sources):
        layer.write(work / "src" / str(number), {path: text.encode() for path, text in files.items()})
    out = work / "wheels"
    out.mkdir(exist_ok=True)
    builder = Image("builder", (environment.layer(LOCK, HOME),))
    pip = f"python3 -m pip --python={HOME}/bin/python3 wheel --wheel-dir=/out"
    flags = "--no-deps --no-build-isolation --no-index --quiet"
    names = [tomllib.loads(files["pyproject.toml"])["project"]["name"] for files in sources]
    # one call for all is quicker, and refuses two versions of a package
    all_at_once = len({*names}) == len(names)
    script = (
        f"{pip} {flags} /src/*" if all_at_once else f"set -e; for one in /src/*; do {pip} {flags} $one; done"
    )
    environment.step(builder, ["sh", "-c", script], {"/src": work / "src", "/out": out})
    return [out / _wheel_name(files) for files in sources]


def _wheel_name(files: Files) -> str:
    project = tomllib.loads(files["pyproject.toml"])["project"]
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def examples(work: Path) -> list[Image]:
    """ECHO and GUARD, built from the sources of examples/llamastack. Raises RuntimeError."""
    sources = [example("acme-echo"), example("acme-guard")]
    return [
        image(name, work / "images" / wheel.stem, files[SPEC_FILE], [wheel])
        for name, files, wheel in zip((ECHO, GUARD), sources, wheels(sources, work), strict=True)
    ]


def with_services(work: Path) -> list[Image]:
    """SHOUT and WHISPER. Raises RuntimeError."""
    return served({SHOUT: example("acme-shout"), WHISPER: scaffolded_service("acme-whisper")}, work)


def scaffolded_service(name: str) -> dict[str, str]:
    """What `init --service` writes."""
    return dict(scaffold.sources("inference", name, service=True))


def served(sources: Mapping[str, Files], work: Path) -> list[Image]:
    """Images of providers with services by their names, built as the Containerfile of acme-shout says.

    Files below app/ lie beside the service. Raises RuntimeError.
    """
    made = []
    for (name, files), wheel in zip(sources.items(), wheels([*sources.values()], work), strict=True):
        folder = work / "images" / wheel.stem
        base = image(name, folder / "provider", files[SPEC_FILE], [wheel])
        app = {f"/{path}": text.encode() for path, text in files.items() if path.startswith("app/")}
        service = layer.write(folder / "service", {SERVICE[1]: files["service.py"].encode(), **app})
        made.append(replace(base, layers=(*base.layers, service), command=SERVICE))
    return made


def image(name: str, folder: Path, spec: str | None, packages: Iterable[Path]) -> Image:
    """An image with this lls-provider-spec.yaml (None: without) and these wheels, its layer in `folder`."""
    files = {f"{PROVIDER}/packages/{path.name}": path.read_bytes() for path in packages}
    if spec is not None:
        files[f"{PROVIDER}/{SPEC_FILE}"] = spec.encode()
    return Image(name, (layer.write(folder, files),), user=USER)
