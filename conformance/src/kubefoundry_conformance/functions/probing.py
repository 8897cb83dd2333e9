"""PRB: what `probe` makes of the upstream CRD."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.functions.subject import Functions, deployment
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.upstream_kind import Schema, UnsupportedSchema

ODD: Final[tuple[dict[str, Any], ...]] = (
    {"type": "object"},
    {"type": "string"},
    {"type": "integer"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-int-or-string": True},
)
"""Schemas in the place of a field's."""

DEPTH: Final = 2
"""Levels below `spec` of which a field is left out."""


def _probe(subject: Functions, crd: Object) -> Schema | UnsupportedSchema | str:
    """What it returns, or the exception in words."""
    try:
        return subject.provider.probe(crd)
    except (Exception, SystemExit) as error:
        return f"probe raises {error!r}"


def by_fields(subject: Functions) -> Iterator[Finding]:
    crd = subject.installed()
    meta = crd["metadata"]
    meta["labels"] = {"app.kubernetes.io/version": "0.0.1", "helm.sh/chart": "other-0.0.1"}
    meta["annotations"] = {"controller-gen.kubebuilder.io/version": "v0.0.1", "example.com/release": "0.0.1"}
    for version in crd["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["description"] = "release 0.0.1"
    after = _probe(subject, crd)
    if after != subject.schema:
        yield Finding(
            f"{after} once labels, annotations and description tell another release",
            f"{subject.schema}: the fields are the same",
        )


def stored_version(subject: Functions) -> Iterator[Finding]:
    crd = subject.installed()
    served = [version for version in crd["spec"]["versions"] if version.get("served")]
    if len(served) < 2:
        raise Skipped("the CRD serves one version only")
    for chosen in served:
        alone = copy.deepcopy(crd)
        alone["spec"]["versions"] = [{**copy.deepcopy(chosen), "storage": True}]
        if not isinstance(_probe(subject, alone), Schema):
            continue
        together = copy.deepcopy(crd)
        for version in together["spec"]["versions"]:
            version["storage"] = version["name"] == chosen["name"]
        found = _probe(subject, together)
        expected = f"{crd['spec']['group']}/{chosen['name']}"
        if not isinstance(found, Schema) or found.api_version != expected:
            yield Finding(f"{found} of a CRD that stores {chosen['name']}", f"a Schema of {expected}")


def optional_fields(subject: Functions) -> Iterator[Finding]:
    crd = subject.installed()
    used = subject.render(deployment(subject.first())).main
    version = subject.schema.api_version.rpartition("/")[2]
    spec = subject.structure(crd).get("properties", {}).get("spec", {})
    needed = set(subject.cases.needed)
    for path in _paths(spec, ("spec",)):
        named = ".".join(path)
        if _there(used, path) or any(part == named or part.startswith(f"{named}.") for part in needed):
            continue
        found = _probe(subject, _without(crd, version, path))
        if isinstance(found, Schema):
            continue
        yield Finding(
            f"{found} of a CRD without {named}, which the simplest spec does not set",
            f"a Schema that lacks a feature; or {named} under `needed` of the cases",
        )


def odd_schemas(subject: Functions) -> Iterator[Finding]:
    """CRDs that the API server takes, with other content than anybody expects."""
    crd = subject.installed()

    def look(seed: int) -> Iterator[Finding]:
        made, chance = copy.deepcopy(crd), random.Random(seed)
        for version in made["spec"]["versions"]:
            version["schema"] = {"openAPIV3Schema": _odd(version["schema"]["openAPIV3Schema"], chance)}
        found = _probe(subject, made)
        if not isinstance(found, Schema | UnsupportedSchema):
            yield Finding(f"{found} (seed {seed})", "UnsupportedSchema, never an exception")

    yield from search(st.integers(0, 2**32), look, subject.examples)


def _odd(schema: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The schema with some fields left out, of another type, or of any content."""
    roll = chance.random()
    if roll < 0.1:
        return copy.deepcopy(chance.choice(ODD))
    made = dict(schema)
    if "properties" in made:
        kept = {name: child for name, child in made["properties"].items() if chance.random() > 0.1}
        made["properties"] = {name: _odd(child, chance) for name, child in kept.items()}
        made.pop("required", None)
    if isinstance(made.get("items"), dict):
        made["items"] = _odd(made["items"], chance)
    return made


def _paths(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(path) > DEPTH:
        return
    for name, child in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _paths(child, (*path, name))


def _there(value: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _without(crd: Object, version: str, path: tuple[str, ...]) -> Object:
    made = copy.deepcopy(crd)
    for candidate in made["spec"]["versions"]:
        if candidate["name"] != version:
            continue
        part = candidate["schema"]["openAPIV3Schema"]
        for name in path[:-1]:
            part = part["properties"][name]
        del part["properties"][path[-1]]
        if path[-1] in part.get("required", ()):
            part["required"] = [name for name in part["required"] if name != path[-1]]
    return made


CHECKS: Final = (
    Check("PRB-1", "another release's labels on the same fields", by_fields),
    Check("PRB-2", "each version that it can write as the stored one", stored_version),
    Check("PRB-3", "the CRD without one field after another", optional_fields),
    Check("PRB-4", "CRDs with fields that are missing, or of other types", odd_schemas),
)
