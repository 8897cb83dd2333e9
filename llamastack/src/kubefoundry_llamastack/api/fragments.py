"""Parts of a pod that a LlamaStackDistribution carries, as Kubernetes itself describes them.

`core_fragments.json` is generated from what an API server says of core/v1:

    kubectl get --raw /openapi/v3/api/v1 > openapi.json
    python -m kubefoundry_llamastack.api.fragments openapi.json
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from kubefoundry_sdk.api.schema import Schema

FILE: Final = Path(__file__).with_name("core_fragments.json")
CORE: Final = "io.k8s.api.core.v1."
KINDS: Final = ("EnvVar", "ResourceRequirements", "Volume", "VolumeMount", "TopologySpreadConstraint")

QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""As controller-gen writes it for a resource.Quantity."""

EITHER: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
KEPT: Final = ("type", "format", "items", "properties", "required", "additionalProperties")
OPAQUE: Final[dict[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**EITHER, "pattern": QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": EITHER,
    # Controller-gen leaves the metadata of embedded objects open.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
}


def fragment(kind: str) -> Schema:
    """The structural schema of a part, the caller's own to change."""
    found: Schema = json.loads(_text())[kind]
    return found


@cache
def _text() -> str:
    return FILE.read_text(encoding="utf-8")


def generated(openapi: dict[str, Any]) -> dict[str, Schema]:
    """The fragments from an API server's OpenAPI document of core/v1. Raises KeyError where it lacks one."""
    schemas = openapi["components"]["schemas"]
    return {kind: _structural(schemas[CORE + kind], schemas, required=True) for kind in KINDS}


def _structural(node: dict[str, Any], schemas: dict[str, Any], *, required: bool) -> Schema:
    """One node with its references put in, without descriptions: those are in Kubernetes' own documentation."""
    for part in (*node.get("allOf", ()), node):
        if "$ref" in part:
            name = part["$ref"].rsplit("/", 1)[-1]
            if name in OPAQUE:
                return dict(OPAQUE[name])
            return _structural(schemas[name], schemas, required=required)
    made: Schema = {}
    must = set(node.get("required", ()))
    for key in KEPT:
        match key, node.get(key):
            case _, None:
                pass
            case "properties", fields:
                made[key] = {
                    name: _structural(field, schemas, required=name in must)
                    for name, field in sorted(fields.items())
                }
            case (("items" | "additionalProperties"), inner):
                made[key] = _structural(inner, schemas, required=True)
            case _, value:
                made[key] = value
    default = node.get("default")
    if default is not None and not required and not isinstance(default, dict):
        made["default"] = default
    for key in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"):
        if key in node:
            made[key] = node[key]
    return made


def main(arguments: list[str]) -> int:
    """The command. Exit code 2 for wrong arguments."""
    if len(arguments) != 1:
        print("usage: python -m kubefoundry_llamastack.api.fragments OPENAPI.json", file=sys.stderr)
        return 2
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    FILE.write_text(json.dumps(generated(document), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(FILE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
