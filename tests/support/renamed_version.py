"""A version of ModelDeployments that renames, moves and splits fields, and core with its conversion.

`python -m support.renamed_version` is kubefoundry-core that also converts to this version.
"""

from __future__ import annotations

import copy
import sys
from typing import Any, Final

import yaml

from kubefoundry_core.conversion import CONVERSIONS, PATH, Conversions, Fields
from kubefoundry_core.main import PROGRAM, prepared
from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._runtime.process import run

RENAMED: Final = Kind(names.GROUP, "v1", names.MODEL_DEPLOYMENTS, names.MODEL_DEPLOYMENT)
OVERLAY: Final = ROOT / "manifests" / "conversion"

Path = tuple[str, ...]

MOVED: Final[tuple[tuple[Path, Path], ...]] = (
    (("spec", "engine", "contextLength"), ("spec", "engine", "maxLength")),
    (("spec", "nodeSelector"), ("spec", "placement", "nodeSelector")),
    (("spec", "tolerations"), ("spec", "placement", "tolerations")),
)
"""Paths of v1alpha1 and of this version. `spec.model.id` is split into `organization` and `name`."""


def from_common(obj: Object) -> Object:
    """Return an object of v1alpha1 with the fields of this version."""
    renamed = copy.deepcopy(obj)
    for source, target in MOVED:
        _move(renamed, source, target)
    model = _parent(renamed, ("spec", "model", "id"))
    if model is not None and isinstance(model.get("id"), str):
        organization, slash, name = model.pop("id").partition("/")
        model |= {"organization": organization, "name": name} if slash else {"name": organization}
    return renamed


def to_common(obj: Object) -> Object:
    """Return an object of this version with the fields of v1alpha1."""
    common = copy.deepcopy(obj)
    for target, source in MOVED:
        _move(common, source, target)
    spec = common.get("spec")
    if isinstance(spec, dict) and spec.get("placement") == {}:
        del spec["placement"]
    model = _parent(common, ("spec", "model", "name"))
    if model is not None and isinstance(model.get("name"), str):
        parts = [model.get("organization", ""), model["name"]]
        if isinstance(parts[0], str):
            model["id"] = "/".join(parts if "organization" in model else parts[1:])
            model.pop("organization", None)
            del model["name"]
    return common


def _move(obj: Object, source: Path, target: Path) -> None:
    """Move the value at `source`, unless a value on the way is not a map."""
    parent = _parent(obj, source)
    if parent is None or source[-1] not in parent:
        return
    place: Any = obj
    for step in target[:-1]:
        place = place.setdefault(step, {})
        if not isinstance(place, dict):
            return
    place[target[-1]] = parent.pop(source[-1])


def _parent(obj: Object, path: Path) -> Object | None:
    """Return the map that has the last step of the path, or None."""
    place: Any = obj
    for step in path[:-1]:
        place = place.get(step) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else None


WITH_RENAMED: Final[Conversions] = {
    **CONVERSIONS,
    names.MODEL_DEPLOYMENT: {
        **CONVERSIONS[names.MODEL_DEPLOYMENT],
        RENAMED.api_version: Fields(to_common, from_common),
    },
}


def with_renamed(crd: Object) -> Object:
    """Return the CRD of ModelDeployments with this version, which is served and not stored."""
    version = copy.deepcopy(crd["spec"]["versions"][1]) | {"name": RENAMED.version, "storage": False}
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = spec["properties"]
    engine, model = fields["engine"]["properties"], fields["model"]["properties"]
    engine["maxLength"] = engine.pop("contextLength")
    moved = {name: fields.pop(name) for name in ("nodeSelector", "tolerations")}
    fields["placement"] = {"type": "object", "minProperties": 1, "properties": moved}
    model["name"] = model.pop("id")
    model["organization"] = {"type": "string", "pattern": "^[^/]*$"}
    # Its rules name the fields of v1alpha1. Core's webhooks validate the converted object.
    _remove_rules(version["schema"])
    return {**crd, "spec": {**crd["spec"], "versions": [*crd["spec"]["versions"], version]}}


def _remove_rules(schema: Any) -> None:
    if isinstance(schema, dict):
        schema.pop("x-kubernetes-validations", None)
        for child in schema.values():
            _remove_rules(child)


def install_core(suite: Suite) -> Component:
    """Install core with the conversion of this version. The process is not started."""
    core = suite.install("core", environment={"PYTHONPATH": str(ROOT / "tests")})
    core.command[:1] = [sys.executable, "-m", "support.renamed_version"]
    return core


def switch_on(suite: Suite, *, renamed: bool = True) -> None:
    """Apply the overlay. The URL of core's process replaces the Service, to which no kube-proxy leads."""
    documents = list(yaml.safe_load_all(suite.plane.kubectl("kustomize", str(OVERLAY)).stdout))
    port = suite.components["core"].environment["KUBEFOUNDRY_WEBHOOK_PORT"]
    for document in documents:
        if document["kind"] == "CustomResourceDefinition":
            client = document["spec"]["conversion"]["webhook"]["clientConfig"]
            assert client.pop("service")["path"] == PATH
            client["url"] = f"https://127.0.0.1:{port}{PATH}"
    if renamed:
        documents = [
            with_renamed(each) if each["metadata"]["name"] == MODEL_DEPLOYMENTS.crd else each
            for each in documents
        ]
    apply(suite.plane, documents)


if __name__ == "__main__":
    sys.exit(run(PROGRAM, *prepared(conversions=WITH_RENAMED)))
