"""The version of Kubernetes that the tests run on, and the tests that need a newer one.

A test marked `needs_kubernetes("1.31", "selectable fields")` is skipped on an older version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_local.control_plane import GIVEN, build, existing

MARK: Final = "needs_kubernetes"


@cache
def version() -> str:
    """Return the version of the API server, such as `1.26.9`."""
    if kubeconfig := os.environ.get(GIVEN):
        shown = json.loads(existing(Path(kubeconfig)).kubectl("version", "-o", "json").stdout)
        text = shown["serverVersion"]["gitVersion"]
    else:
        # either the control plane of the devcluster, or the one of KUBEBUILDER_ASSETS
        command = [str(build()), "kube-apiserver", "--version"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"v(\d+\.\d+\.\d+)", text)
    assert found, f"no version of Kubernetes in {text!r}"
    return found[1]


def at_least(needed: str) -> bool:
    """Check whether the API server has this version (`1.31`) or a newer one."""
    return not is_older(version(), needed)


def is_older(present: str, needed: str) -> bool:
    """Compare two versions by major and minor number."""
    return _numbers(present) < _numbers(needed)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".")[:2])


def lacking(item: pytest.Item, present: str) -> str:
    """Return the reason why a test cannot run on this version, empty if it can."""
    for mark in item.iter_markers(MARK):
        needed, feature = mark.args
        if is_older(present, needed):
            return f"{feature}: needs Kubernetes {needed}, and this is {present}"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a newer version, before a fixture starts a control plane."""
    if item.get_closest_marker(MARK) and (reason := lacking(item, version())):
        pytest.skip(reason)
