"""Schemas of the parts of a pod that a LlamaStackDistribution contains, as Kubernetes describes them.

`core_fragments.json` is generated from an API server's OpenAPI document of core/v1:

    kubectl get --raw /openapi/v3/api/v1 > openapi.json
    python -m kubefoundry_llamastack.api.fragments openapi.json
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from kubefoundry_sdk._api.structure import Schema

FILE: Final = Path(__file__).with_name("core_fragments.json")
CORE: Final = "io.k8s.api.core.v1."
KINDS: Final = ("EnvVar", "ResourceRequirements", "Volume", "VolumeMount", "TopologySpreadConstraint")

QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern that controller-gen writes for a resource.Quantity."""

EITHER: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
KEPT_KEYS: Final = ("type", "format", "items", "properties", "required", "additionalProperties")
LIST_KEYS: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
OPAQUE: Final[dict[str, Schema]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**EITHER, "pattern": QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": EITHER,
    # Controller-gen leaves the metadata of embedded objects open.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
}


def fragment(kind: str) -> Schema:
    """Return the structural schema of a part. The caller may change it."""
    schema: Schema = json.loads(_text())[kind]
    return schema


@cache
def _text() -> str:
    return FILE.read_text(encoding="utf-8")


def generated(openapi: dict[str, Any]) -> dict[str, Schema]:
    """Generate the fragments from an API server's OpenAPI document of core/v1.

    Raises:
        KeyError: The document lacks one of KINDS.
    """
    schemas = openapi["components"]["schemas"]
    return {kind: _structural(schemas[CORE + kind], schemas, is_required=True) for kind in KINDS}


def _structural(node: dict[str, Any], schemas: dict[str, Any], *, is_required: bool) -> Schema:
    """Resolve the references of a node. Descriptions are left out: Kubernetes' documentation has them."""
    if name := _reference(node):
        return (
            dict(OPAQUE[name])
            if name in OPAQUE
            else _structural(schemas[name], schemas, is_required=is_required)
        )
    schema = {key: _kept_value(key, node, schemas) for key in KEPT_KEYS if node.get(key) is not None}
    default = node.get("default")
    # A required field needs no default, and controller-gen writes none for objects.
    if default is not None and not is_required and not isinstance(default, dict):
        schema["default"] = default
    return schema | {key: node[key] for key in LIST_KEYS if key in node}


def _reference(node: dict[str, Any]) -> str:
    """Return the name of the schema that the node refers to, empty if there is none."""
    for part in (*node.get("allOf", ()), node):
        if "$ref" in part:
            return str(part["$ref"].rsplit("/", 1)[-1])
    return ""


def _kept_value(key: str, node: dict[str, Any], schemas: dict[str, Any]) -> Any:
    value = node[key]
    match key:
        case "properties":
            required_keys = set(node.get("required", ()))
            return {
                name: _structural(field, schemas, is_required=name in required_keys)
                for name, field in sorted(value.items())
            }
        case "items" | "additionalProperties":
            return _structural(value, schemas, is_required=True)
        case _:
            return value


def main(arguments: list[str]) -> int:
    """Run the command. Return exit code 2 for wrong arguments."""
    if len(arguments) != 1:
        print("usage: python -m kubefoundry_llamastack.api.fragments OPENAPI.json", file=sys.stderr)
        return 2
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    FILE.write_text(json.dumps(generated(document), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(FILE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
