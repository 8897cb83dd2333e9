"""Writes the references of fields from crds/: every field with its type, default and meaning, and every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kubefoundry_llamastack.api.crd import FRAGMENTS

HERE = Path(__file__).parent
CRDS = HERE.parent / "crds"
OURS = """\
# Fields of the two resources

Generated from `crds/` by `make docs`; `kubectl explain md.spec` says the same. API group `kubefoundry.ai`, versions
`v1beta1` and `v1alpha1` (deprecated), which have the same fields. *Rules* lists the validation rules with their
messages.
"""

LLAMASTACK = """\
# Fields of a LlamaStackDistribution

Generated from `crds/llamastack/` by `make docs`; `kubectl explain llsd.spec` says the same. API group
`llamastack.io`, version `v1alpha1`. KubeFoundry adds `externalProviders`, `modelDeployments` and their status; all
other fields are the same as in the existing operator. For core/v1 types, see `kubectl explain pod.spec`.
"""

Schema = dict[str, Any]
Folded = Mapping[str, str]
"""Places of the spec whose fields are Kubernetes' own, and what it calls them."""


def references() -> dict[Path, str]:
    """The files and their texts."""
    ours, stack = ("modeldeployments", "inferenceproviderconfigs"), ("llamastack/llamastackdistributions",)
    return {
        HERE / "crd-reference.md": _document(OURS, ours, {}),
        HERE / "llamastack" / "crd-reference.md": _document(LLAMASTACK, stack, dict(FRAGMENTS)),
    }


def _document(header: str, crds: tuple[str, ...], folded: Folded) -> str:
    parts = [header]
    for name in crds:
        parts.extend(_resource(yaml.safe_load((CRDS / f"{name}.yaml").read_text()), folded))
    return "\n".join(parts)


def _resource(crd: Schema, folded: Folded) -> Iterator[str]:
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {names['kind']}\n"
    scope = "a namespace" if crd["spec"]["scope"] == "Namespaced" else "the whole cluster"
    yield f"{schema['description']} Belongs to {scope}; short name `{', '.join(names['shortNames'])}`.\n"
    columns = version["additionalPrinterColumns"]
    usual = ", ".join(column["name"] for column in columns if not column.get("priority"))
    wide = ", ".join(column["name"] for column in columns if column.get("priority"))
    yield f"`kubectl get` shows {usual}{f'; with `-o wide` also {wide}' if wide else ''}.\n"
    for part in ("spec", "status"):
        yield f"### {names['kind']} {part}\n"
        yield "| field | type | default | meaning |\n|---|---|---|---|"
        yield from _rows(schema["properties"][part], "", folded if part == "spec" else {})
        yield ""
        if rules := list(_rules(schema["properties"][part], part)):
            yield "Rules:\n"
            yield from rules
            yield ""


def _rows(schema: Schema, prefix: str, folded: Folded) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        default = "required" if name in required else _default(field)
        kind = _folded(path, folded)
        yield f"| `{path}` | {kind or _type(field)} | {default} | {_cell(field.get('description', ''))} |"
        if not kind:
            yield from _rows(field, f"{path}.", folded)
            yield from _rows(field.get("items", {}), f"{path}[].", folded)


def _folded(path: str, folded: Folded) -> str:
    if path in folded:
        return f"core/v1 {folded[path]}"
    return f"list of core/v1 {folded[f'{path}[]']}" if f"{path}[]" in folded else ""


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in field else "integer or string"
    match field["type"]:
        case "array":
            return f"list of {_type(field['items'])}{_most(field, 'maxItems', 'items')}"
        case "object" if "additionalProperties" in field:
            return f"map of {_type(field['additionalProperties'])}{_most(field, 'maxProperties', 'entries')}"
        case "object":
            return "free object" if field.get("x-kubernetes-preserve-unknown-fields") else "object"
        case "string" if "enum" in field:
            return " \\| ".join(f"`{value}`" for value in field["enum"])
        case "string" if field.get("format") == "date-time":
            return "time"
        case "string":
            return f"string{_most(field, 'maxLength', 'characters')}"
        case "integer":
            return f"integer{_bounds(field)}"
        case plain:
            return str(plain)


def _most(field: Schema, limit: str, unit: str) -> str:
    return f" (at most {field[limit]} {unit})" if limit in field else ""


def _bounds(field: Schema) -> str:
    """A lower bound of interest; that of the whole number type goes without saying."""
    least, most = field.get("minimum"), field.get("maximum")
    if least is None or least < 0:
        return ""
    return f", {least} to {most}" if most is not None and most < 2**31 - 1 else f", from {least}"


def _default(field: Schema) -> str:
    default = field.get("default")
    return "" if default in (None, {}) else f"`{str(default).lower() if default is False else default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _rules(schema: Schema, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- `{path}`: {rule['message']}"
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
        yield from _rules(field.get("items", {}), f"{path}.{name}[]")


if __name__ == "__main__":
    for path, text in references().items():
        path.write_text(text)
