"""Builds the CRD of LlamaStackDistribution from the typed models: the existing operator's fields and ours.

`python -m kubefoundry_llamastack.api.crd DIR` writes it. It is separate from KubeFoundry's own CRDs, because
a cluster that only serves ModelDeployments needs none of it, and a cluster may have the existing operator's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_llamastack.api.fragments import fragment
from kubefoundry_llamastack.api.spec import ExternalProviders, Spec
from kubefoundry_llamastack.api.status import Status
from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.schema import structural
from kubefoundry_sdk._api.structure import Schema

HEADER: Final = """\
# Generated from the typed models of kubefoundry_llamastack.api; edits are lost.
# To change it, edit those and run: make crds
"""

FRAGMENTS: Final = (
    ("server.containerSpec.env[]", "EnvVar"),
    ("server.containerSpec.resources", "ResourceRequirements"),
    ("server.podOverrides.volumes[]", "Volume"),
    ("server.podOverrides.volumeMounts[]", "VolumeMount"),
    ("server.topologySpreadConstraints[]", "TopologySpreadConstraint"),
    *(
        (f"server.externalProviders.{section.alias}[].service.{field}", kind)
        for section in ExternalProviders.model_fields.values()
        for field, kind in (("env[]", "EnvVar"), ("resources", "ResourceRequirements"))
    ),
)
"""Parts of a pod, and what Kubernetes calls them."""

NAME_OR_IMAGE: Final = "Only one of name or image can be specified"
BASE_URL: Final = "base_url follows the ModelDeployment's endpoint and cannot be set"


def definition() -> Object:
    """Build the CRD. The tests of the upstream rung list its differences from the existing operator's."""
    spec = structural(Spec)
    for path, kind in FRAGMENTS:
        place = at(spec, path)
        described = {"description": place["description"]} if "description" in place else {}
        place.clear()
        place.update(described | fragment(kind))
    _rule(at(spec, "server.distribution"), "!(has(self.name) && has(self.image))", NAME_OR_IMAGE)
    for section in ExternalProviders.model_fields.values():
        _open(at(spec, f"server.externalProviders.{section.alias}[].config"))
        # The API server checks the rules as those of the NetworkPolicy.
        _open(at(spec, f"server.externalProviders.{section.alias}[].service.egress[]"))
        # No rules for `service`: in 13 lists without a limit they exceed the API server's budget for CEL.
    config = at(spec, "server.modelDeployments[].config")
    _open(config)
    config["properties"] = {"base_url": {"type": "string", "description": "Rejected."}}
    _rule(config, "!has(self.base_url)", BASE_URL)
    status = structural(Status)
    _open(at(status, "distributionConfig.providers[].config"))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": LLSD.crd},
        "spec": {
            "group": LLSD.group,
            "names": {
                "kind": LLSD.kind,
                "listKind": f"{LLSD.kind}List",
                "plural": LLSD.plural,
                "shortNames": ["llsd"],
                "singular": LLSD.kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [_version(spec, status)],
        },
    }


def _version(spec: Schema, status: Schema) -> Object:
    return {
        "name": LLSD.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            _column("Phase", ".status.phase"),
            _column("Operator Version", ".status.version.operatorVersion"),
            _column("Server Version", ".status.version.llamaStackServerVersion"),
            _column("Providers", ".status.providersReady"),
            _column("Available", ".status.availableReplicas", "integer"),
            _column("Age", ".metadata.creationTimestamp", "date"),
        ],
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "description": "A llama-stack server with providers that are added at deploy time.",
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": spec, "status": status},
            }
        },
    }


def at(schema: Schema, path: str) -> Schema:
    """Return the schema at a path such as `server.containerSpec.env[]`."""
    for step in path.split("."):
        schema = schema["properties"][step.removesuffix("[]")]
        if step.endswith("[]"):
            schema = schema["items"]
    return schema


def _open(place: Schema) -> None:
    place["x-kubernetes-preserve-unknown-fields"] = True


def _rule(place: Schema, rule: str, message: str) -> None:
    place["x-kubernetes-validations"] = [{"rule": rule, "message": message}]


def _column(name: str, path: str, type_: str = "string") -> Object:
    return {"name": name, "type": type_, "jsonPath": path}


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text() -> str:
    """Return the content of the CRD's file."""
    dumped: str = yaml.dump(definition(), Dumper=_Plain, sort_keys=False, width=110, allow_unicode=True)
    return HEADER + dumped


def main(arguments: list[str]) -> int:
    """Run the command. Return exit code 2 for wrong arguments."""
    if len(arguments) != 1:
        print("usage: python -m kubefoundry_llamastack.api.crd DIR", file=sys.stderr)
        return 2
    path = Path(arguments[0]) / f"{LLSD.plural}.yaml"
    path.write_text(text(), encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
