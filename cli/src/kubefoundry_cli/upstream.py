"""Predict the objects that a provider would write for a ModelDeployment, with the functions of its controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.output import clean
from kubefoundry_cli.provenance import (
    Leaves,
    Origins,
    Path,
    below,
    differing,
    is_within,
    leaves,
    origins,
    text,
)
from kubefoundry_cli.spec_path import ABSENT
from kubefoundry_sdk._api import foreign_yaml, managed_fields, names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import drift, foreign_values, helper_names, manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import Plan, plan

BROAD: Final = 4
"""A field is too broad to explain a value if this many times as many values follow it as the most specific field."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of an upstream value.

    Attributes:
        path: The path of the value.
        old: The live value, ABSENT if there is none.
        new: The new value, ABSENT if there is none.
        fields: The spec fields that the value follows.
        reverts: Who has changed the old value since it was applied, None if nobody has.
    """

    path: Path
    old: Any
    new: Any
    fields: tuple[str, ...]
    reverts: str | None = None

    def values(self) -> list[str]:
        """Return a line with each value that is present, as a diff marks it."""
        pairs = (("-", self.old), ("+", self.new))
        return [f"{sign} {clean(value)}" for sign, value in pairs if value is not ABSENT]


@dataclass(frozen=True, slots=True)
class Planned:
    """The effect of an edit on the upstream objects.

    Attributes:
        write_plan: The writes of the controller.
        before: The main object as it was applied last, None for a new object.
        changes: The changed values.
        unchanged: Number of values that stay.
        notes: The provider's notes.
    """

    write_plan: Plan
    before: Object | None
    changes: tuple[Change, ...]
    unchanged: int
    notes: tuple[str, ...]


def problems(provider: Provider, obj: Object, schema: Schema | None) -> tuple[str, ...]:
    """Return why the provider would refuse this valid ModelDeployment; empty if it accepts."""
    return compatibility.check(provider, read(obj), schema).problems


def refusals(provider: Provider, obj: Object, schema: Schema | None, live: Object | None) -> tuple[str, ...]:
    """Return why the controller would refuse this edit of a valid ModelDeployment; empty if it accepts.

    Args:
        provider: The provider.
        obj: The ModelDeployment after the edit.
        schema: The schema that the provider writes for, None if it is unknown.
        live: The live main object, None if it does not exist.
    """
    provider, deployment, _ = _as_written(provider, obj, schema, live)
    return compatibility.check(provider, deployment, schema).problems


def _as_written(
    provider: Provider, obj: Object, schema: Schema | None, live: Object | None
) -> tuple[Provider, Deployment, manifest.Record | None]:
    """Return the provider and the deployment as the controller writes them, and the record of the last apply."""
    record = manifest.applied(live) if live else None
    deployment = pinned(read(obj), record)
    return compatibility.as_written(provider, deployment, schema, record, live), deployment, record


def rendered(provider: Provider, obj: Object, schema: Schema) -> Rendered:
    """Return the upstream objects of a valid ModelDeployment. Raises Failure with the provider's reasons."""
    deployment = read(obj)
    _refuse(provider, deployment, schema)
    return results.render(provider, deployment, schema)


def as_new(provider: Provider, upstream_objects: Rendered) -> Rendered:
    """Return the rendered objects with the names that the controller gives them for a new model."""
    return helper_names.with_cluster_names(provider.named_by_content, upstream_objects, {}, {}, ())


def planned(
    provider: Provider, obj: Object, schema: Schema, live: Object | None, helpers: Sequence[Object]
) -> Planned:
    """Return the changes that the controller would write for a valid ModelDeployment.

    Args:
        provider: The provider.
        obj: The ModelDeployment.
        schema: The schema that the provider writes for.
        live: The live main object, None if it does not exist.
        helpers: The live helpers.

    Raises:
        Failure: The provider refuses the ModelDeployment.
    """
    with_all = provider
    provider, deployment, record = _as_written(provider, obj, schema, live)
    _refuse(provider, deployment, schema)
    upstream_objects = results.render(provider, deployment, schema)
    write_plan = plan(provider, deployment, schema, upstream_objects, live, helpers)
    before = _applied_manifest(provider, record, live, upstream_objects)
    new = flattened(provider, [manifest.content(item) for item in write_plan.objects], flags=True)
    recorded = {} if before is None else flattened(provider, [before, *_recorded(helpers)], flags=True)
    old, writers = _live_values(provider, schema, before, live, helpers, recorded, new)
    specs = [obj["spec"], *([record.spec] if record else [])]
    sources = [
        origins(spec, lambda spec: _render_values(provider, deployment, schema, spec)) for spec in specs
    ]
    # The source of a value that follows several fields together, but none of them alone.
    edited = tuple(text(path) for path in sorted(differing(leaves(specs[0]), leaves(specs[-1]))))
    changed = differing(old, new)
    restored = {path for path in writers if recorded.get(path, ABSENT) == new.get(path, ABSENT)}

    def change(path: Path) -> Change:
        # A value that is only restored comes from no edit.
        fields = () if path in restored else _fields(path, sources, edited) or edited
        return Change(path, old.get(path, ABSENT), new.get(path, ABSENT), fields, writers.get(path))

    changes = tuple(map(change, sorted(changed)))
    unchanged = len((old.keys() & new.keys()) - changed)
    sentence = compatibility.waiting_note(with_all, deployment, schema, write_plan.main)
    notes = (*upstream_objects.notes, *filter(None, [sentence]))
    return Planned(write_plan, before, changes, unchanged, notes)


def _applied_manifest(
    provider: Provider, record: manifest.Record | None, live: Object | None, upstream_objects: Rendered
) -> Object | None:
    """Return the manifest of the last apply with the live counts of an autoscaler, None for a new object."""
    if record is None:
        return None
    applied = deepcopy(record.manifest)
    if live is not None:
        # Neither this edit nor our last apply changes the counts of an autoscaler.
        foreign_values.keep(provider, applied, live, None, upstream_objects)
    return applied


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the upstream object.

    Attributes:
        path: The path of the value.
        fields: The spec fields that it follows.
        written: The applied value.
        live: The live value, ABSENT if there is none.
        writer: Who has changed the value since, None if nobody has.
    """

    path: str
    fields: tuple[str, ...]
    written: Any
    live: Any
    writer: str | None


def values(provider: Provider, obj: Object, schema: Schema, live: Object) -> list[Value]:
    """Return all values that were applied to the upstream object of a valid ModelDeployment."""
    provider, deployment, record = _as_written(provider, obj, schema, live)
    applied = (
        record.manifest if record else manifest.content(results.render(provider, deployment, schema).main)
    )
    written, current = _values(provider, {**applied, "kind": live["kind"]}), _values(provider, live)
    source = origins(obj["spec"], lambda spec: _render_values(provider, deployment, schema, spec))
    drifted: dict[Path, list[str]] = {}
    for place in drift.differences(applied, live, provider.ignored_differences):
        for path in below(written, f"{live['kind']}.{place}"):
            if current.get(path, ABSENT) != written[path]:
                drifted.setdefault(path, []).append(place)
    counts = Counter(field for path in written for field in source.follows.get(path, ()))
    result = []
    for path, value in sorted(written.items()):
        live_value, writer = value, None
        if path in drifted:
            live_value = current.get(path, ABSENT)
            manager = names.provider_manager(provider.name)
            writer = managed_fields.writer(live, drifted[path], manager) or managed_fields.UNKNOWN
        fields = _specific(source.follows.get(path, ()), counts)
        result.append(Value(text(path[1:]), fields, value, live_value, writer))
    return result


def _specific(fields: Sequence[str], counts: Mapping[str, int]) -> tuple[str, ...]:
    """Leave out broad fields such as `engine.type`: at least BROAD times as many values follow them (see BROAD)."""
    least = min((counts[field] for field in fields), default=0)
    return tuple(field for field in fields if counts[field] < BROAD * least)


def _fields(path: Path, sources: Sequence[Origins], edited: Sequence[str]) -> tuple[str, ...]:
    """Return the spec fields that a value follows. After an edit, return only the edited fields if there are any."""
    fields = dict.fromkeys(field for source in sources for field in source.follows.get(path, ()))
    touched = tuple(field for field in fields if any(is_within(edited_path, field) for edited_path in edited))
    if touched or (fields and not edited):
        return touched or tuple(fields)
    return _changed_rigid_fields(sources)


def _changed_rigid_fields(sources: Sequence[Origins]) -> tuple[str, ...]:
    """Return the rigid fields that the edit changes. A field that it does not change is not the cause."""
    first = sources[0].rigid
    rigid = dict.fromkeys(field for source in sources for field in source.rigid)
    return tuple(
        field for field in rigid if any(source.rigid.get(field) != first.get(field) for source in sources)
    )


def _refuse(provider: Provider, deployment: Deployment, schema: Schema) -> None:
    verdict = compatibility.check(provider, deployment, schema)
    if verdict.problems:
        raise Failure(
            f"{provider.title} refuses ModelDeployment '{deployment.name}': {'; '.join(verdict.problems)}"
        )


def _render_values(provider: Provider, deployment: Deployment, schema: Schema, spec: Object) -> Leaves | None:
    other = replace(deployment, spec=ModelDeploymentSpec.model_validate(spec), raw_spec=spec)
    if compatibility.check(provider, other, schema).problems:
        return None
    upstream_objects = results.render(provider, other, schema)
    return flattened(provider, [upstream_objects.main, *upstream_objects.helpers], flags=True)


def _live_values(
    provider: Provider,
    schema: Schema,
    before: Object | None,
    live: Object | None,
    helpers: Sequence[Object],
    recorded: Leaves,
    new: Leaves,
) -> tuple[Leaves, dict[Path, str]]:
    """Return the live values at the applied paths, and the writer of each one that differs from the applied value.

    Args:
        provider: The provider.
        schema: The schema that it writes for.
        before: The manifest of the main object that was applied.
        live: The live main object.
        helpers: The live helpers.
        recorded: The applied values of all objects.
        new: The values that would be applied.
    """
    if live is None:
        return {}, {}
    if before is None:
        live_values = _values(provider, live)
        return {path: live_values[path] for path in new if path in live_values}, {}
    # values of another version of the CRD cannot be compared
    is_comparable = before.get("apiVersion") == schema.api_version
    ignored = foreign_values.paths(provider)
    changes = _changes_of_helpers(provider, helpers)
    changes |= _changed_since(provider, before, live, ignored) if is_comparable else {}
    current = recorded | {path: value for path, (value, _) in changes.items()}
    present = {path: value for path, value in current.items() if value is not ABSENT}
    return present, {path: writer for path, (_, writer) in changes.items()}


def _changes_of_helpers(provider: Provider, helpers: Sequence[Object]) -> dict[Path, tuple[Any, str]]:
    """Return the values of the helpers that others have changed since they were applied, each with its writer."""
    changes: dict[Path, tuple[Any, str]] = {}
    for helper in helpers:
        if record := manifest.applied(helper):
            changes |= _changed_since(provider, record.manifest, helper, ())
    return changes


def _changed_since(
    provider: Provider, applied: Object, live: Object, ignored: Sequence[str]
) -> dict[Path, tuple[Any, str]]:
    """Return the live values that others have changed since the object was applied, each with its writer."""
    written, current = _values(provider, {**applied, "kind": live["kind"]}), _values(provider, live)
    changed = {}
    for place in drift.differences(applied, live, ignored):
        by = managed_fields.writer(live, [place], names.provider_manager(provider.name))
        below_it = f"{live['kind']}.{place}"
        for path in below(written, below_it).keys() | below(current, below_it).keys():
            value = current.get(path, ABSENT)
            # Skip a value without another writer: admission changed it during the apply, and would do so again.
            if value != written.get(path, ABSENT) and (by or value is ABSENT):
                changed[path] = (value, by or managed_fields.UNKNOWN)
    return changed


def _values(provider: Provider, obj: Object) -> Leaves:
    return flattened(provider, [manifest.content(obj)], flags=True)


def _recorded(helpers: Sequence[Object]) -> list[Object]:
    records = (manifest.applied(helper) for helper in helpers)
    return [record.manifest for record in records if record]


def flattened(provider: Provider, objects: list[Object], *, flags: bool = False) -> Leaves:
    """Return all values of the objects, each below its kind. Parse YAML documents in strings.

    Args:
        provider: The provider, which declares the strings that are documents.
        objects: The objects.
        flags: Whether command-line arguments are one value for each flag, see `leaves`.
    """
    result: Leaves = {}
    for obj in objects:
        content = {key: part for key, part in obj.items() if key != "kind"}
        for path, value in leaves(content, flags=flags).items():
            document = any((kind.kind, kind.path) == (obj["kind"], path) for kind in provider.documents)
            inner = leaves(_content(value), path, flags=flags) if document else {path: value}
            result.update({(obj["kind"], *place): leaf for place, leaf in inner.items()})
    return result


def _content(text: Any) -> Any:
    """Return the content of a document, or its text if the provider's controller would not read it either."""
    try:
        return foreign_yaml.decode(text) if isinstance(text, str) else text
    except ValueError:
        return text
