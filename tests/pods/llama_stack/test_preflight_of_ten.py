"""How long preflight takes with as many providers as the design expects, on the real server and a cold cache."""

from __future__ import annotations

import re
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_nodes.kubelet.image import Image, shared_root
from pods.images import provider
from pods.llama_stack.chain import Chain
from support.page_cache import forget_cached
from support.provider_images import wheel

pytestmark = pytest.mark.integration

PROVIDERS: Final = 10
DEPENDENCIES: Final = 8
NATIVE: Final = 5
"""Of the dependencies: those that hold a shared object."""

SECONDS: Final = 30
"""NFR of 000: preflight of ten providers."""

DEPENDENCY = """
import ctypes
import pathlib
from {name} import {modules}
for path in pathlib.Path(__file__).parent.glob("*.so"):
    ctypes.CDLL(path)
"""


def dependency(folder: Path, name: str, native: bytes | None) -> Path:
    """A wheel of twenty modules; importing it loads its shared object."""
    modules = [f"part_{number}" for number in range(20)]
    files: dict[str, str | bytes] = {f"{name}/{module}.py": f"NAME = '{module}'\n" * 50 for module in modules}
    files[f"{name}/__init__.py"] = DEPENDENCY.format(name=name, modules=", ".join(modules))
    if native is not None:
        files[f"{name}/core.so"] = native
    return wheel(folder, name, files=files)


def images(work: Path) -> list[Image]:
    """Ten providers as `init` writes them, each of which imports eight packages that nobody else has."""
    native = next(shared_root().glob("usr/lib/*/libcrypto.so.3")).read_bytes()
    sources, wheels = [], []
    for number in range(PROVIDERS):
        names = [f"dep{number}_{part}" for part in range(DEPENDENCIES)]
        source = provider.scaffolded("inference", f"acme-p{number}", [f"{name}==1.0.0" for name in names])
        source[f"src/acme_p{number}/__init__.py"] += f"\nimport {', '.join(names)}\n"
        sources.append(source)
        folder = work / "dependencies" / str(number)
        wheels.append(
            [dependency(folder, name, native if part < NATIVE else None) for part, name in enumerate(names)]
        )
    own = provider.wheels(sources, work)
    return [
        provider.image(
            f"p{number}:1", work / "images" / str(number), source["lls-provider-spec.yaml"], [one, *more]
        )
        for number, (source, one, more) in enumerate(zip(sources, own, wheels, strict=True))
    ]


@pytest.mark.accept("PF-13")
def test_ten_providers_of_300_megabytes(
    chain: Callable[[], Chain], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = chain()
    started = time.monotonic()
    for number, image in enumerate(images(tmp_path)):
        ended = pod.install(image, f"p{number}")
        assert ended.code == 0, ended.log
    installed = time.monotonic() - started
    assert pod.merge().code == 0
    objects = len(list(pod.places.packages.rglob("*.so")))
    size = forget_cached(pod.places.packages)
    for layer in (shared_root(), *pod.distribution.layers):
        forget_cached(layer)
    started, before = time.monotonic(), _cpu_seconds()
    ended = pod.preflight()
    seconds, cpu = time.monotonic() - started, _cpu_seconds() - before
    assert ended.code == 0, ended.log
    for folder in (pod.places.packages, tmp_path):
        shutil.rmtree(folder)

    found = re.search(r"external providers: 10; ([\d.]+) s, ([\d.]+) s of it to load them", ended.log)
    assert found, ended.log
    with capsys.disabled():
        print(
            f"\npreflight of {PROVIDERS} providers with {DEPENDENCIES} dependencies each, {size / 1e6:.0f} MB, "
            f"{objects} shared objects, cold cache: {seconds:.1f} s, {cpu:.1f} s of CPU; of it imports {found[2]} s, "
            f"all else of the tool {float(found[1]) - float(found[2]):.1f} s "
            f"(images built and installed before in {installed:.0f} s)"
        )
    assert size >= 300_000_000
    assert objects >= 50
    assert 1 < cpu < SECONDS


def _cpu_seconds() -> float:
    """Return the CPU time of all child processes that have ended. What else the machine does is not in it."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
