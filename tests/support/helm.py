"""Helm, built from its Go module, and the project's charts as tests install them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_local.control_plane import BUILD, ROOT, CannotRun
from kubefoundry_local.suite import WEBHOOK_TIMEOUT
from kubefoundry_sdk._api.kinds import Object

VERSION: Final = "KUBEFOUNDRY_TEST_HELM"
"""Environment variable: helm4 or helm3, a target of dev/devcluster/build."""

CHARTS: Final = ROOT / "charts"
CHART: Final = CHARTS / "kubefoundry"
CRD_CHART: Final = CHARTS / "kubefoundry-crds"

OLDEST: Final = ("--kube-version", "1.26.0")
"""The oldest supported version. Without a version, helm assumes the one that its build names."""

WEBHOOK_SERVICE: Final = (
    r"      service:\n        name: kubefoundry-core\n        namespace: .*\n"
    r"        path: (\S+)\n        port: 443\n"
)


Key = tuple[str, str | None, str]
"""Kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Helm:
    """A helm program. `folder`: its own configuration and cache. `kubeconfig`: of its cluster; None for none."""

    binary: Path
    folder: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run helm. Raises AssertionError with its output if it fails and `check` is set."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        if self.kubeconfig:
            environment["KUBECONFIG"] = str(self.kubeconfig)
        done = subprocess.run(
            [str(self.binary), *arguments], env=environment, capture_output=True, text=True, check=False
        )
        if check:
            assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done

    def rendered(
        self, chart: Path, *arguments: str, name: str = "kubefoundry", namespace: str
    ) -> list[Object]:
        """Return the objects of `helm template`."""
        text = self("template", name, str(chart), "--namespace", namespace, *OLDEST, *arguments).stdout
        return [document for document in yaml.safe_load_all(text) if document]


@cache
def build(target: str = "") -> Path:
    """Build a program of dev/devcluster/build unless it is cached, and return it: helm if no target is given.

    Raises:
        CannotRun: The build failed.
    """
    target = target or os.environ.get(VERSION) or "helm4"
    done = subprocess.run([str(BUILD), target], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CannotRun(f"{BUILD} {target} failed: its last lines say why")
    return Path(done.stdout.strip().splitlines()[-1])


def with_local_webhooks(chart: Path, folder: Path, port: int) -> Path:
    """Copy the chart, with a loopback URL instead of the Service of core's webhooks, and return the copy."""
    copy = shutil.copytree(chart, folder / chart.name)
    template = copy / "templates" / "core.yaml"
    text, count = re.subn(WEBHOOK_SERVICE, rf"      url: https://127.0.0.1:{port}\1\n", template.read_text())
    assert count == 3
    template.write_text(text.replace("timeoutSeconds: 2\n", f"timeoutSeconds: {WEBHOOK_TIMEOUT}\n"))
    return copy


def values_file(path: Path, values: dict[str, Any]) -> Sequence[str]:
    """Write a file of values, and return the arguments that pass it to helm."""
    path.write_text(json.dumps(values))
    return ("--values", str(path))


def by_key(objects: list[Object]) -> dict[Key, Object]:
    """Return the objects by kind, namespace and name. Fail if two are equal in these."""
    found = {(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found
