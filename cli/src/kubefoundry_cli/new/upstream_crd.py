"""Read an upstream CRD, and write the parts of a new provider that follow from its schema."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.yaml_file import documents_in
from kubefoundry_sdk._api.formats import DNS_LABEL, DNS_SUBDOMAIN
from kubefoundry_sdk._api.untrusted import mapping, part

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "model": ("string", "spec.model.id"),
    "servedName": ("string", "spec.served_name"),
    "image": ("string", "image"),
    "replicas": ("integer", "spec.scaling.replicas"),
    "gpus": ("integer", "spec.gpu_count"),
    "flags": ("object", "flags"),
    "env": ("array", "spec.env"),
    "nodeSelector": ("object", "spec.node_selector"),
    "tolerations": ("array", "spec.tolerations"),
}
"""For a field of the CRD's `spec` with this name and type: the expression in `render` that fills it."""

HONOURED_BY: Final[Mapping[str, str]] = {
    "resources.cpu": "",
    "resources.cpuLimit": "",
    "resources.memory": "",
    "podTemplate.metadata.labels": "",
    "podTemplate.metadata.annotations": "",
    "podTemplate.spec": "",
    "podTemplate.container": "",
    "model.storage.volumes": "",
    "model.storage.uri": "",
    "model.storage.offline": "",
    "secrets.huggingFaceToken": "",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "env": "env",
    "engine.args": "flags",
    "engine.extraArgs": "",
    "engine.contextLength": "flags",
    "engine.trustRemoteCode": "flags",
}
"""For a field of a ModelDeployment: the field of `SOURCES` that honours it. Without that field, it is refused."""


@dataclass(frozen=True, slots=True)
class UpstreamCrd:
    """The CRD of an upstream kind.

    Attributes:
        group: The API group.
        version: The stored version.
        kind: The kind.
        plural: The plural, as in URLs and permissions.
        spec: The schema of `spec` in the stored version.
        status: The schema of `status` in the stored version.
        text: The file.
    """

    group: str
    version: str
    kind: str
    plural: str
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    text: str

    @property
    def required(self) -> list[str]:
        """Return the names of required fields of `spec`."""
        return [name for name in self.spec.get("required") or () if name in self.properties]

    @property
    def properties(self) -> Mapping[str, Any]:
        """Return the schemas of the fields of `spec`."""
        return mapping(self.spec.get("properties"))

    @property
    def filled(self) -> dict[str, str]:
        """Return the fields of `spec` that `render` fills, with their expressions, required fields included."""
        filled = {
            name: expression
            for name, (type_, expression) in SOURCES.items()
            if mapping(self.properties.get(name)).get("type") == type_
        }
        return filled | {
            name: repr(example(mapping(self.properties[name])))
            for name in self.required
            if name not in filled
        }


def read(file: Path) -> UpstreamCrd:
    """Read the CRD in a file.

    Raises:
        Failure: The file cannot be read, or does not hold exactly one CRD with a namespaced kind and a `spec`.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise Failure(f"cannot read {file}: {error}", Exit.USAGE) from error
    spec = part(_only_crd(text, file), "spec")
    kinds, versions = mapping(spec.get("names")), spec.get("versions") or []
    stored: Mapping[str, Any] = next((each for each in versions if mapping(each).get("storage")), {})
    named = {
        "group": (spec.get("group"), DNS_SUBDOMAIN),
        "stored version": (stored.get("name"), DNS_LABEL),
        "kind": (kinds.get("kind"), r"[A-Za-z][A-Za-z0-9]*"),
        "plural": (kinds.get("plural"), DNS_LABEL),
        "namespaced scope": (spec.get("scope"), "Namespaced"),
    }
    for field, (value, form) in named.items():
        if not (isinstance(value, str) and re.fullmatch(form, value)):
            raise Failure(f"{file}: the CustomResourceDefinition has no valid {field}", Exit.USAGE)
    properties = mapping(mapping(mapping(stored.get("schema")).get("openAPIV3Schema")).get("properties"))
    if not mapping(mapping(properties.get("spec")).get("properties")):
        version = stored["name"]
        raise Failure(f"{file}: version {version} declares no fields of spec: leave out --crd", Exit.USAGE)
    group, version, kind, plural, _ = (str(value) for value, _ in named.values())
    status = mapping(properties.get("status"))
    return UpstreamCrd(group, version, kind, plural, mapping(properties["spec"]), status, text)


def _only_crd(text: str, file: Path) -> Any:
    crds = [
        document
        for document in documents_in(text, str(file))
        if mapping(document).get("kind") == "CustomResourceDefinition"
    ]
    if len(crds) != 1:
        raise Failure(
            f"{file} has {len(crds)} CustomResourceDefinitions: name a file with the one that the provider writes",
            Exit.USAGE,
        )
    return crds[0]


def example(schema: Mapping[str, Any]) -> Any:
    """Return a small value that fits a schema, unless the schema has a pattern or rules."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        properties = mapping(schema.get("properties"))
        return {name: example(mapping(properties.get(name))) for name in schema.get("required") or ()}
    if schema.get("type") == "array":
        return [example(mapping(schema.get("items")))] * int(schema.get("minItems") or 0)
    return _scalar_example(schema)


def _scalar_example(schema: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum") or 0
        case "boolean":
            return False
        case "string":
            return "x" * int(schema.get("minLength") or 0)
    return 0 if schema.get("x-kubernetes-int-or-string") else {}


def needed_fields(crd: UpstreamCrd) -> str:
    """Return the code that declares the needed fields, and names the others."""
    names = [*crd.filled] or [*crd.properties][:1]
    return (
        f"{_comment('spec of the CRD', crd.spec)}\n{_comment('status of the CRD', crd.status)}\n"
        'NEEDED: Final = tuple(\n    f"spec.{name}" for name in ('
        f"{''.join(f'{literal(name)}, ' for name in names)})\n)"
    )


def refused(crd: UpstreamCrd) -> str:
    """Return the code that lists the fields of a ModelDeployment without a place in the CRD."""
    fields = [field for field, name in HONOURED_BY.items() if name not in crd.filled]
    return "NO_PLACE: Final = (\n" + "".join(f"    {literal(field)},\n" for field in fields) + ")"


def content(crd: UpstreamCrd) -> str:
    """Return the code in `render` that fills the fields of `spec`."""
    lines = []
    for name, expression in crd.filled.items():
        if name not in SOURCES or SOURCES[name][1] != expression:
            lines.append("        # required by the CRD: replace this value")
        lines.append(f"        {literal(name)}: {expression},")
    return "    content: dict[str, object] = {\n" + "".join(f"{line}\n" for line in lines) + "    }"


def literal(text: str) -> str:
    """Return a text as Python writes it in double quotes. A CRD may have any text as the name of a field."""
    return json.dumps(text)


def _comment(title: str, schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required") or ())
    fields = ", ".join(
        f"{name} ({mapping(field).get('type', 'any')}{', required' if name in required else ''})"
        for name, field in mapping(schema.get("properties")).items()
    )
    return textwrap.fill(
        f"{title}: {fields or 'no fields'}", 100, initial_indent="# ", subsequent_indent="#   "
    )
