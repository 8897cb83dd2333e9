"""Names that moved still work, with a warning that says where they are now."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import kubefoundry_sdk

RELEASED = (
    "LAST_WORDS Capabilities ComponentScaling Deployment Derived Document Endpoint Fields GpuSpec "
    "ModelDeploymentSpec NotReadable Object Observation ObservedPhase Operator Parallel Pods Provider "
    "ReadyReason Rendered Replicas Schema SelectionRule Settings UnsupportedSchema UpstreamCondition "
    "UpstreamKind aggregated_resources argv by_fields connect container_resources contradictions "
    "count declared duration flag from_flags literal manifest mapping parallel refused_fields run "
    "secret_env_from serve supports text upstream_conditions"
)
"""The names in `kubefoundry_sdk.__all__` of 0.2.0."""

MOVED = sorted(kubefoundry_sdk._MOVED)


@pytest.mark.parametrize("name", RELEASED.split())
def test_released_name_is_public_or_moved(name: str) -> None:
    assert (name in kubefoundry_sdk.__all__) != (name in MOVED)


@pytest.mark.parametrize("name", MOVED)
def test_moved_name_warns_with_its_new_place(name: str) -> None:
    with pytest.warns(DeprecationWarning) as caught:
        value = getattr(kubefoundry_sdk, name)

    (warning,) = caught
    _, _, statement = str(warning.message).partition(": import ")
    new, _, place = statement.partition(" from ")
    assert getattr(import_module(place), new) is value
    assert new in import_module(place).__all__
    assert str(warning.message).startswith(f"kubefoundry_sdk.{name} is deprecated: ")
    assert warning.filename == __file__


def test_moved_name_warns_at_the_import(tmp_path: Path) -> None:
    program = tmp_path / "provider.py"
    program.write_text("import sys\nfrom kubefoundry_sdk import argv\nargv([], {})\n")

    done = subprocess.run(
        [sys.executable, "-W", "default", str(program)], stderr=subprocess.PIPE, text=True, check=True
    )

    warned = [line for line in done.stderr.splitlines() if "DeprecationWarning" in line]
    assert warned == [
        f"{program}:2: DeprecationWarning: kubefoundry_sdk.argv is deprecated: import argv from "
        "kubefoundry_sdk.engine"
    ]


def test_current_name_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        for name in kubefoundry_sdk.__all__:
            getattr(kubefoundry_sdk, name)


@pytest.mark.parametrize("name", MOVED)
def test_type_checkers_know_a_moved_name(name: str) -> None:
    lines = Path(kubefoundry_sdk.__file__ or "").read_text().splitlines()
    module, _, new = kubefoundry_sdk._MOVED[name].partition(":")

    expected = f"    {name} = {new}" if new else f"    from kubefoundry_sdk.{module} import {name} as {name}"
    assert expected in lines
