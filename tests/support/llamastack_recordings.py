"""What was recorded of the existing operator: CRs, the children it made of them, and who owned which field.

They lie in ../shared, and only there; tests that read them are of the upstream rung.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from kubefoundry_sdk.api.foreign_yaml import quick_loader
from support.upstream import SHARED

FOLDER = SHARED / "upstream-crds" / "llamastack"
CHILDREN = FOLDER / "children"

LOADER: Any = quick_loader()
"""The pure Python one takes a second whenever the tests are collected."""

Object = dict[str, Any]

needed = pytest.mark.skipif(
    not CHILDREN.is_dir(),
    reason=f"NOT compared with the existing operator's children: there are none in {CHILDREN}",
)

REFUSED = "17-name-and-image"
CHILDLESS = "18-unknown-name"
FLAGGED = "15-network-policy"
"""Recorded with the network policies switched on."""


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded CR and its children."""

    name: str
    cr: Object
    children: list[Object]

    @property
    def namespace(self) -> str:
        found: str = self.cr["metadata"]["namespace"]
        return found


def cases() -> list[Case]:
    """All cases that have children, in order."""
    found = []
    for path in sorted(CHILDREN.glob("[0-9][0-9]-*.yaml")):
        if path.stem in (REFUSED, CHILDLESS):
            continue
        cr, *children = yaml.load_all(path.read_bytes(), Loader=LOADER)
        found.append(Case(path.stem, cr, children))
    return found


def names() -> list[str]:
    """Of all cases; where none are there, one that stands for them: its test is skipped with the reason."""
    return [case.name for case in cases()] or ["all of them"]


def inputs() -> Iterator[Object]:
    """What the CRs name: ConfigMaps, the ClusterRole, the operator's ConfigMap."""
    yield from yaml.load_all((CHILDREN / "inputs.yaml").read_bytes(), Loader=LOADER)


def wish(case: Case) -> Object:
    """The CR as a user would apply it."""
    cr = copy.deepcopy(case.cr)
    cr.pop("status", None)
    return cr


def content(obj: Object) -> Object:
    """An object without what differs between any two clusters, or is a control plane's to say."""
    made = copy.deepcopy(obj)
    # Items of a list do not say their kind.
    for key in ("status", "apiVersion", "kind"):
        made.pop(key, None)
    meta = made["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        meta.pop(key, None)
    annotations = meta.get("annotations") or {}
    annotations.pop("deployment.kubernetes.io/revision", None)
    if not annotations:
        meta.pop("annotations", None)
    for owner in meta.get("ownerReferences") or ():
        owner.pop("uid", None)
    spec = made.get("spec") or {}
    if spec.get("clusterIP"):
        spec["clusterIP"], spec["clusterIPs"] = "CLUSTER-IP", ["CLUSTER-IP"]
    return made


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Paths at which two objects are not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differences(one.get(key), other.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differences(first, second, f"{path}[{_mark(first, index)}]")
    elif one != other:
        yield path


def _mark(item: Any, index: int) -> str:
    return str(item["name"]) if isinstance(item, dict) and "name" in item else str(index)
