"""The two CustomResourceDefinitions, made from the typed models and the rules.

`python -m kubefoundry_sdk._api.crd DIR [SCHEMAS]` writes them, and the schemas of their specs into another folder.
The CRDs use no feature that is newer than Kubernetes 1.26 (contract §1).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.providerconfig import ProviderConfigSpec, ProviderConfigStatus
from kubefoundry_sdk._api.rules import RULES
from kubefoundry_sdk._api.schema import structural
from kubefoundry_sdk._api.status import ModelDeploymentStatus
from kubefoundry_sdk._api.structure import Schema

HEADER: Final = """\
# Generated from the typed models of kubefoundry_sdk._api; edits are lost.
# To change it, edit those and run: python -m kubefoundry_sdk._api.crd crds
"""

_PAUSED: Final = ".metadata.annotations." + names.PAUSED_ANNOTATION.replace(".", r"\.")
_READY: Final = '.status.conditions[?(@.type=="Ready")]'


def model_deployments() -> Object:
    """Return the CRD of ModelDeployment.

    `status.replicas` of the scale subresource counts the replicas that serve, so that `kubectl scale --timeout` waits
    for them.
    """
    spec = structural(ModelDeploymentSpec)
    for rule in RULES:
        place = _place(spec, rule.at)
        place.setdefault("x-kubernetes-validations", []).append({"rule": rule.cel, "message": rule.message})
    return _definition(
        MODEL_DEPLOYMENTS,
        "md",
        "A model to serve, described independently of the provider that runs it.",
        spec,
        structural(ModelDeploymentStatus),
        [
            _column("Provider", ".status.provider.name", "Provider that runs the model"),
            _column("Phase", ".status.phase", "Summary of the state"),
            _column("Ready", f"{_READY}.status", "Whether the observed generation serves"),
            # A JSON path cannot compare the two; users see that the numbers differ.
            _column("Generation", ".metadata.generation", "Newest edit", type_="integer"),
            _column(
                "Observed",
                ".status.observedGeneration",
                "Edit that the other columns are about; behind Generation while an edit is refused, held back or "
                "rolling out",
                type_="integer",
            ),
            _column("Replicas", ".status.replicas.ready", "Units that are ready to serve", type_="integer"),
            _column("Desired", ".status.replicas.desired", "Units that were requested", type_="integer"),
            _column("Endpoint", ".status.endpoint.service", "Service of the API"),
            _column("Port", ".status.endpoint.port", "Port of that Service", type_="integer"),
            _AGE,
            # From metadata, so it is correct even while no component writes the phase.
            _column(
                "Deleting",
                ".metadata.deletionTimestamp",
                "Time since the deletion was requested; empty if it was not",
                type_="date",
            ),
            _column("Model", ".spec.model.id", "Model that is served", wide=True),
            _column("Engine", ".spec.engine.type", "Engine that the spec names", wide=True),
            # A JSON path cannot fall back to another one.
            _column(
                "Selected-Engine",
                ".status.provider.engine",
                "Engine that was selected; empty if the spec names it",
                wide=True,
            ),
            _column("Paused", _PAUSED, "Whether edits have no effect", wide=True),
            _column("Reason", f"{_READY}.reason", "Reason of the Ready condition", wide=True),
            _column("Message", ".status.message", "Current state, and what to do", wide=True),
        ],
        scale={
            "specReplicasPath": ".spec.scaling.replicas",
            "statusReplicasPath": ".status.replicas.ready",
            "labelSelectorPath": ".status.selector",
        },
    )


def provider_configs() -> Object:
    """Return the CRD of InferenceProviderConfig."""
    return _definition(
        PROVIDER_CONFIGS,
        "ipc",
        "A provider's registration: what it can serve, when it is selected, and its current state.",
        structural(ProviderConfigSpec),
        structural(ProviderConfigStatus),
        [
            _column("Ready", ".status.ready", "Whether the provider accepts deployments", type_="boolean"),
            _column(
                "Rules",
                '.status.conditions[?(@.type=="RulesValid")].status',
                "Whether the selector can use all selection rules",
            ),
            _column(
                "Applied",
                '.status.conditions[?(@.type=="RegistrationApplied")].status',
                "False while admission changes the registration; otherwise empty",
            ),
            _column("Version", ".status.version", "Name and version of the provider's controller"),
            _column("Upstream", ".status.upstreamCRDVersion", "API version of the upstream resource"),
            _column("Heartbeat", ".status.lastHeartbeat", "Time since the last report", type_="date"),
            _AGE,
            _column("Engines", ".spec.capabilities.engines", "Supported engines", wide=True),
            _column("Modes", ".spec.capabilities.servingModes", "Supported serving modes", wide=True),
        ],
    )


def _column(name: str, path: str, description: str, *, type_: str = "string", wide: bool = False) -> Object:
    """Return a printer column; `-o wide` shows a wide one."""
    priority = {"priority": 1} if wide else {}
    return {"name": name, "type": type_, "jsonPath": path, "description": description, **priority}


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "Time since creation", type_="date")


def _place(schema: Schema, path: str) -> Schema:
    """Return the schema at a rule's place, for example `spec.env[].valueFrom`."""
    for step in path.split(".")[1:]:
        schema = schema["properties"][step.removesuffix("[]")]
        if step.endswith("[]"):
            schema = schema["items"]
    return schema


def _definition(
    kind: Kind,
    short_name: str,
    description: str,
    spec: Schema,
    status: Schema,
    columns: list[Object],
    scale: Object | None = None,
) -> Object:
    """Return a CRD. Its versions have the same fields, so a conversion rewrites only `apiVersion`."""
    scaling: dict[str, Any] = {"scale": scale} if scale else {}
    content = {
        "additionalPrinterColumns": columns,
        "subresources": {"status": {}, **scaling},
        "schema": {
            "openAPIV3Schema": {
                "description": description,
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": spec, "status": status},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd, "labels": {names.PROTECTED_LABEL: "true"}},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [short_name],
                "categories": [names.MANAGED_BY],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    # Stored for one more release: the CRD of the release before lacks the newer version, and a roll
                    # back to it is refused once an object is stored in a version that it lacks.
                    "storage": True,
                    "deprecated": True,
                    "deprecationWarning": names.DEPRECATIONS[kind.kind],
                    **content,
                },
                {"name": names.NEWEST_VERSION, "served": True, "storage": False, **content},
            ],
        },
    }


def write(directory: Path) -> list[Path]:
    """Write both CRDs into `directory`, and return the files. Raise OSError if a file cannot be written."""
    import yaml

    class Plain(yaml.SafeDumper):
        """Repeated parts are written out, because apiextensions knows no YAML anchors in review."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    written = []
    for definition in (model_deployments(), provider_configs()):
        path = directory / f"{definition['spec']['names']['plural']}.yaml"
        text = yaml.dump(definition, Dumper=Plain, sort_keys=False, width=110, allow_unicode=True)
        path.write_text(HEADER + text, encoding="utf-8")
        written.append(path)
    return written


def write_schemas(directory: Path) -> None:
    """Write the schemas that `structure.of_spec` reads. Raise OSError if a file cannot be written."""
    for kind, model in ((MODEL_DEPLOYMENTS, ModelDeploymentSpec), (PROVIDER_CONFIGS, ProviderConfigSpec)):
        text = json.dumps(structural(model), indent=1, ensure_ascii=False)
        (directory / f"{kind.kind.lower()}.schema.json").write_text(f"{text}\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the command, and return its exit code: 2 for wrong arguments, 1 if the files cannot be written."""
    if len(arguments) not in (1, 2):
        print("usage: python -m kubefoundry_sdk._api.crd DIR [SCHEMAS]", file=sys.stderr)
        return 2
    try:
        for path in write(Path(arguments[0])):
            print(path)
        if arguments[1:]:
            write_schemas(Path(arguments[1]))
    except OSError as error:
        print(f"CRDs not written to {arguments[0]}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
