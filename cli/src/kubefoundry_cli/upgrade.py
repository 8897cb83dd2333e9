"""What another release of the CRD means for the models that run: decided as their provider would decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kubefoundry_cli import upstream
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.reconcile.context import read
from kubefoundry_sdk.provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.earlier_render import pinned
from kubefoundry_sdk.provider.write.plan import plan

Fate = Literal["untouched", "rewritten", "recreated", "refused", "frozen"]
"""untouched: nothing is written. rewritten: changed in place, which may restart pods. recreated: deleted and made
again. refused: it serves, and its next edit is refused. frozen: it serves, nothing can be written at all."""


@dataclass(frozen=True, slots=True)
class Model:
    """A valid ModelDeployment, and its upstream objects as they are: None and empty where there are none yet."""

    obj: Object
    live: Object | None
    helpers: Sequence[Object] = ()

    @property
    def named(self) -> str:
        meta = self.obj["metadata"]
        return f"{meta['namespace']}/{meta['name']}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a model. why: for which reason, empty where nothing does. lost: values of its upstream object,
    by path, that the new CRD has no field for: the API server drops them when the object is written next."""

    model: str
    fate: Fate
    why: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """A CRD as the provider finds it. missing: what it lacks to be written at all. lost: what nobody can ask for."""

    schema: Schema | None
    missing: tuple[str, ...]
    lost: tuple[str, ...]
    versions: Mapping[str, Mapping[str, Any]]
    converts: bool


def release(provider: Provider, crd: Object, discovered: Mapping[str, str] | None = None) -> Release:
    """discovered: settings of the operator as it runs today; a CRD does not tell them."""
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
    """What the provider does with the model once that CRD is installed."""
    lost = tuple(_lost(new, model.live)) if model.live else ()
    if new.schema is None:
        return Outcome(model.named, "frozen", f"the CRD lacks {', '.join(new.missing)}", lost)
    record = manifest.applied(model.live) if model.live else None
    deployment = pinned(read(model.obj), record)
    refused = upstream.problems(provider, model.obj, new.schema)
    if refused:
        return Outcome(model.named, "refused", "; ".join(refused), lost)
    rendered = provider.render(deployment, new.schema)
    todo = plan(
        provider, deployment, new.schema, rendered, model.live, model.helpers, record, converts=new.converts
    )
    if model.live is None:
        return Outcome(model.named, "untouched", "it has nothing upstream yet", ())
    if todo.recreate:
        return Outcome(model.named, "recreated", todo.recreate, lost)
    if todo.changed:
        kinds = ", ".join(dict.fromkeys(obj["kind"] for obj in todo.changed))
        return Outcome(model.named, "rewritten", f"{kinds} would be applied again", lost)
    return Outcome(model.named, "untouched", "", lost)


def made(provider: Provider, obj: Object, schema: Schema) -> Model:
    """A model as it is once it was made with that schema, without a cluster. Raises Failure when it is refused."""
    rendered = upstream.rendered(provider, obj, schema)
    todo = plan(provider, read(obj), schema, rendered, None, [])
    return Model(obj, todo.main, todo.helpers)


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
    """Paths of values that the schema has no field for, and does not keep unknown."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return
    if isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            below = fields.get(key, others)
            if isinstance(below, Mapping):
                yield from _unknown(item, below, f"{path}.{key}" if path else key)
            elif not others:
                yield f"{path}.{key}" if path else key
    elif isinstance(value, list):
        for item in value:
            yield from _unknown(item, schema.get("items") or {}, f"{path}[]")


def gained(old: Release, new: Release) -> tuple[str, ...]:
    """What could not be asked for and now can."""
    return tuple(field for field in old.lost if field not in new.lost) if new.schema else ()


def given_up(old: Release, new: Release) -> tuple[str, ...]:
    """What could be asked for and no longer can."""
    return tuple(field for field in new.lost if field not in old.lost) if old.schema else ()
