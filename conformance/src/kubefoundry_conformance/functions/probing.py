"""PRB: checks of `probe`."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.functions.subject import Functions, build_deployment
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema

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
"""Schemas that replace the schema of a field."""

DEPTH: Final = 2
"""Levels below `spec` from which a field is removed."""


def _probe(subject: Functions, crd: Object) -> Schema | UnsupportedSchema | str:
    """Return the result of `probe`, or the description of its exception or of a value that is no result."""
    try:
        probed = subject.provider.probe(crd)
    except (Exception, SystemExit) as error:
        return f"probe raises {error!r}"
    return probed if isinstance(probed, Schema | UnsupportedSchema) else f"probe returns {probed!r}"


def check_labels_are_ignored(subject: Functions) -> Iterator[Finding]:
    """Write another release into labels, annotations and descriptions, and expect the same result."""
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


def check_stored_version(subject: Functions) -> Iterator[Finding]:
    """Store each version in turn, and expect that `probe` chooses it if it supports it alone.

    Raises:
        Skipped: The CRD serves one version only.
    """
    crd = subject.installed()
    served = [candidate for candidate in crd["spec"]["versions"] if candidate.get("served")]
    if len(served) < 2:
        raise Skipped("the CRD serves one version only")
    for version in served:
        alone = copy.deepcopy(crd)
        alone["spec"]["versions"] = [{**copy.deepcopy(version), "storage": True}]
        if not isinstance(_probe(subject, alone), Schema):
            continue
        together = copy.deepcopy(crd)
        for candidate in together["spec"]["versions"]:
            candidate["storage"] = candidate["name"] == version["name"]
        schema = _probe(subject, together)
        expected = f"{crd['spec']['group']}/{version['name']}"
        if not isinstance(schema, Schema) or schema.api_version != expected:
            yield Finding(f"{schema} of a CRD that stores {version['name']}", f"a Schema of {expected}")


def check_optional_fields(subject: Functions) -> Iterator[Finding]:
    """Remove each field that a minimal object does not have, and expect that the CRD stays supported.

    Fields down to DEPTH levels below `spec` are removed, except those under `needed` of the cases.
    """
    crd = subject.installed()
    used = subject.render(build_deployment(subject.first())).main
    version = subject.schema.api_version.rpartition("/")[2]
    spec = subject.structure(crd).get("properties", {}).get("spec", {})
    needed = set(subject.cases.needed)
    for path in _paths(spec, ("spec",)):
        field = ".".join(path)
        if _has(used, path) or any(part == field or part.startswith(f"{field}.") for part in needed):
            continue
        schema = _probe(subject, _without(crd, version, path))
        if isinstance(schema, Schema):
            continue
        yield Finding(
            f"{schema} of a CRD without {field}, which the simplest spec does not set",
            f"a Schema that lacks a feature; or {field} under `needed` of the cases",
        )


def check_odd_schemas(subject: Functions) -> Iterator[Finding]:
    """Probe valid CRDs with unexpected fields and types, and expect no exception."""
    crd = subject.installed()

    def probe_variant(seed: int) -> Iterator[Finding]:
        variant, randomness = copy.deepcopy(crd), random.Random(seed)
        for version in variant["spec"]["versions"]:
            version["schema"] = {
                "openAPIV3Schema": _random_variant(version["schema"]["openAPIV3Schema"], randomness)
            }
        schema = _probe(subject, variant)
        if not isinstance(schema, Schema | UnsupportedSchema):
            yield Finding(f"{schema} (seed {seed})", "UnsupportedSchema, never an exception")

    yield from search(st.integers(0, 2**32), probe_variant, subject.examples)


def _random_variant(schema: dict[str, Any], randomness: random.Random) -> dict[str, Any]:
    """Return the schema with random fields removed or of another type."""
    roll = randomness.random()
    if roll < 0.1:
        return copy.deepcopy(randomness.choice(ODD))
    variant = dict(schema)
    if "properties" in variant:
        kept = {name: child for name, child in variant["properties"].items() if randomness.random() > 0.1}
        variant["properties"] = {name: _random_variant(child, randomness) for name, child in kept.items()}
        variant.pop("required", None)
    if isinstance(variant.get("items"), dict):
        variant["items"] = _random_variant(variant["items"], randomness)
    return variant


def _paths(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(path) > DEPTH:
        return
    for name, child in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _paths(child, (*path, name))


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _without(crd: Object, version: str, path: tuple[str, ...]) -> Object:
    changed = copy.deepcopy(crd)
    for candidate in changed["spec"]["versions"]:
        if candidate["name"] != version:
            continue
        part = candidate["schema"]["openAPIV3Schema"]
        for name in path[:-1]:
            part = part["properties"][name]
        del part["properties"][path[-1]]
        if path[-1] in part.get("required", ()):
            part["required"] = [name for name in part["required"] if name != path[-1]]
    return changed


CHECKS: Final = (
    Check("PRB-1", "another release's labels on the same fields", check_labels_are_ignored),
    Check("PRB-2", "each version that it can write as the stored one", check_stored_version),
    Check("PRB-3", "the CRD without one field after another", check_optional_fields),
    Check("PRB-4", "CRDs with fields that are missing, or of other types", check_odd_schemas),
)
