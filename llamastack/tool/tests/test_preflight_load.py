"""Tests how long preflight takes with as many providers as the design expects (sources §5.2)."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
import yaml

from support.page_cache import forget_cached
from support.provider_images import provider_files, wheel
from support.provider_server import Server

pytestmark = pytest.mark.integration

PROVIDERS, DEPENDENCIES, OBJECTS = 10, 8, 60
OBJECT_BYTES = 6_000_000
SECONDS = 120
"""A bound on the whole, with a disk that stalls. tests/pods measures the 30 s in CPU time."""


@pytest.mark.accept("PF-13")
def test_preflight_loads_ten_large_providers_in_time(server: Server) -> None:
    header = Path(sys.executable).resolve().read_bytes()[:64]
    wheels, entries = server.root / "many", []
    for number in range(PROVIDERS):
        package, dependencies = f"p{number}", [f"dep{number}_{part}" for part in range(DEPENDENCIES)]
        kind = f"remote::{package}"
        wheel(wheels, package, files=provider_files(package, kind), requires=dependencies)
        for name in dependencies:
            wheel(wheels, name, files={f"{name}/part_{part}.py": "" for part in range(20)})
        entries.append({"provider_id": package, "provider_type": kind, "module": package})
    server.unpack(wheels)
    for number in range(OBJECTS):
        folder = server.places.packages / f"dep{number % PROVIDERS}_{number // PROVIDERS}"
        (folder / f"core_{number}.so").write_bytes(header + os.urandom(OBJECT_BYTES))
    (server.places.config / "run.yaml").write_text(yaml.safe_dump({"providers": {"inference": entries}}))
    size = forget_cached(server.places.packages)

    started = time.monotonic()
    ended = server.preflight()
    seconds = time.monotonic() - started
    shutil.rmtree(server.places.packages)

    assert ended.code == 0, ended.log
    assert "external providers: 10" in ended.log
    assert size > 300_000_000
    assert seconds < SECONDS
