"""Predict the effect of another CRD release on the running models, with the functions of their provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kubefoundry_cli import upstream
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import plan

Fate = Literal["untouched", "rewritten", "recreated", "refused", "frozen"]
"""The effect on a model.

`untouched`: nothing is written. `rewritten`: changed in place, which may restart pods. `recreated`: deleted and
created again. `refused`: the model serves, but its next edit is refused. `frozen`: the model serves, but nothing
can be written.
"""


@dataclass(frozen=True, slots=True)
class Model:
    """A valid ModelDeployment and its live upstream objects.

    Attributes:
        obj: The ModelDeployment.
        live: The main object, None if it does not exist yet.
        helpers: The helpers.
    """

    obj: Object
    live: Object | None
    helpers: Sequence[Object] = ()

    @property
    def named(self) -> str:
        """Return namespace and name for messages."""
        meta = self.obj["metadata"]
        return f"{meta['namespace']}/{meta['name']}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of an upgrade on one model.

    Attributes:
        model: Namespace and name of the model.
        fate: The effect.
        why: The reason; empty if the model is untouched.
        lost: Paths of upstream values without a field in the new CRD. The API server drops them at the next write.
    """

    model: str
    fate: Fate
    why: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """The provider's view of a CRD.

    Attributes:
        schema: The schema to write for, None if the CRD is not supported.
        missing: Required fields that the CRD lacks.
        lost: Features that no ModelDeployment can use.
        versions: The schema of each served version.
        converts: Whether a webhook converts between the versions.
    """

    schema: Schema | None
    missing: tuple[str, ...]
    lost: tuple[str, ...]
    versions: Mapping[str, Mapping[str, Any]]
    converts: bool


def release(provider: Provider, crd: Object, discovered: Mapping[str, str] | None = None) -> Release:
    """Return the provider's view of the CRD.

    Args:
        provider: The provider.
        crd: The CRD.
        discovered: The present settings of the operator, which a CRD does not have.
    """
    probed = provider.probe(crd)
    versions = {
        version["name"]: (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for version in crd["spec"]["versions"]
        if version.get("served")
    }
    converts = (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook"
    if isinstance(probed, UnsupportedSchema):
        return Release(None, probed.missing, (), versions, converts)
    schema = Schema(probed.api_version, probed.features, probed.lost, discovered or {})
    return Release(schema, (), probed.lost, versions, converts)


def outcome(provider: Provider, new: Release, model: Model) -> Outcome:
    """Return the effect on the model once the CRD is installed."""
    lost = tuple(_lost(new, model.live)) if model.live else ()
    if new.schema is None:
        return Outcome(model.named, "frozen", f"the CRD lacks {', '.join(new.missing)}", lost)
    record = manifest.applied(model.live) if model.live else None
    deployment = pinned(read(model.obj), record)
    provider = compatibility.as_written(provider, deployment, new.schema, record, model.live)
    if refused := upstream.problems(provider, model.obj, new.schema):
        return Outcome(model.named, "refused", "; ".join(refused), lost)
    rendered = results.render(provider, deployment, new.schema)
    write_plan = plan(
        provider, deployment, new.schema, rendered, model.live, model.helpers, record, converts=new.converts
    )
    if model.live is None:
        return Outcome(model.named, "untouched", "it has nothing upstream yet", ())
    if write_plan.recreate:
        return Outcome(model.named, "recreated", write_plan.recreate, lost)
    if write_plan.changed:
        kinds = ", ".join(dict.fromkeys(obj["kind"] for obj in write_plan.changed))
        return Outcome(model.named, "rewritten", f"{kinds} would be applied again", lost)
    return Outcome(model.named, "untouched", "", lost)


def made(provider: Provider, obj: Object, schema: Schema) -> Model:
    """Return a model as the provider creates it for that schema, without a cluster. Raises Failure if refused."""
    rendered = upstream.rendered(provider, obj, schema)
    write_plan = plan(provider, read(obj), schema, rendered, None, [])
    return Model(obj, write_plan.main, write_plan.helpers)


def _lost(new: Release, live: Object) -> Iterator[str]:
    record = manifest.applied(live)
    applied = manifest.body(record.manifest if record else live)
    version = str(applied.get("apiVersion")).rpartition("/")[2]
    if version not in new.versions:
        yield f"apiVersion {applied.get('apiVersion')} (no longer served)"
        return
    content = {key: value for key, value in applied.items() if key not in ("apiVersion", "kind", "status")}
    yield from _unknown(content, new.versions[version], "")


def _unknown(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the paths of values for which the schema has no field, and which it does not preserve."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return
    if isinstance(value, dict):
        fields, others = part(schema, "properties"), schema.get("additionalProperties")
        for key, item in value.items():
            below, place = fields.get(key, others), f"{path}.{key}" if path else key
            if isinstance(below, Mapping):
                yield from _unknown(item, below, place)
            elif not others:
                yield place
    elif isinstance(value, list):
        for item in value:
            yield from _unknown(item, part(schema, "items"), f"{path}[]")


def given_up(old: Release, new: Release) -> tuple[str, ...]:
    """Return the features that only the old release supports."""
    return tuple(field for field in new.lost if field not in old.lost) if old.schema else ()
