"""Recordings of the existing operator: CRs, their children, and the owners of fields.

They are only in ../shared. Tests that read them belong to the upstream rung.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from kubefoundry_sdk._api.foreign_yaml import quick_loader
from support.upstream import SHARED

FOLDER = SHARED / "upstream-crds" / "llamastack"
CHILDREN = FOLDER / "children"

LOADER: Any = quick_loader()
"""The pure Python loader would take a second whenever tests are collected."""

Object = dict[str, Any]

needed = pytest.mark.skipif(
    not CHILDREN.is_dir(),
    reason=f"NOT compared with the existing operator's children: there are none in {CHILDREN}",
)

REFUSED = "17-name-and-image"
CHILDLESS = "18-unknown-name"


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded CR and its children."""

    name: str
    cr: Object
    children: list[Object]

    @property
    def namespace(self) -> str:
        """Return the CR's namespace."""
        return str(self.cr["metadata"]["namespace"])


def cases() -> list[Case]:
    """Return all cases with children, in order."""
    recorded = []
    for path in sorted(CHILDREN.glob("[0-9][0-9]-*.yaml")):
        if path.stem in (REFUSED, CHILDLESS):
            continue
        cr, *children = yaml.load_all(path.read_bytes(), Loader=LOADER)
        recorded.append(Case(path.stem, cr, children))
    return recorded


def names() -> list[str]:
    """Return the names of all cases. Without recordings, return one name for a test that is skipped."""
    return [case.name for case in cases()] or ["all of them"]


def inputs() -> Iterator[Object]:
    """Yield the objects that the CRs need: ConfigMaps, the ClusterRole, the operator's ConfigMap."""
    yield from yaml.load_all((CHILDREN / "inputs.yaml").read_bytes(), Loader=LOADER)


def wish(case: Case) -> Object:
    """Return the CR as a user would apply it."""
    cr = copy.deepcopy(case.cr)
    cr.pop("status", None)
    return cr


def content(obj: Object) -> Object:
    """Return an object without the fields that differ between clusters or that a control plane sets."""
    copied = copy.deepcopy(obj)
    # Items of a list have no kind.
    for key in ("status", "apiVersion", "kind"):
        copied.pop(key, None)
    meta = copied["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        meta.pop(key, None)
    annotations = meta.get("annotations") or {}
    annotations.pop("deployment.kubernetes.io/revision", None)
    if not annotations:
        meta.pop("annotations", None)
    for owner in meta.get("ownerReferences") or ():
        owner.pop("uid", None)
    spec = copied.get("spec") or {}
    if metrics := spec.get("metrics"):
        # older API servers return an autoscaler's metrics in another order
        metrics.sort(key=lambda metric: str(metric["resource"]["name"]))
    if spec.get("clusterIP"):
        spec["clusterIP"], spec["clusterIPs"] = "CLUSTER-IP", ["CLUSTER-IP"]
    return copied


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two objects differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (first, second) in enumerate(zip(left, right, strict=True)):
            yield from differences(first, second, f"{path}[{_mark(first, index)}]")
    elif left != right:
        yield path


def _mark(item: Any, index: int) -> str:
    return str(item["name"]) if isinstance(item, dict) and "name" in item else str(index)
