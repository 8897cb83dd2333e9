"""Decide which upstream objects to write, from a render and the live objects: a pure function (contract §4.13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import (
    drift,
    foreign_values,
    helper_names,
    manifest,
    merge,
    record_trust,
    retained_helpers,
    shared_entries,
)
from kubefoundry_sdk._provider.write.admission import Admission, recorded
from kubefoundry_sdk._provider.write.change import identity_changed
from kubefoundry_sdk._provider.write.earlier_render import alike, earlier_render
from kubefoundry_sdk._provider.write.helpers import Mark, mark, marked


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects to apply, and the reasons.

    Attributes:
        main: The main object to apply, with its ownership and its record.
        helpers: The helpers to apply, likewise.
        changed: The objects that differ from the last apply, or do not exist.
        recreate: Why the main object has to be deleted first.
        drifted: Paths on the live main object that someone has changed; only if nothing else has to be written.
        overwritten: Paths on the live main object that someone has changed, if something else has to be written. The
            write overwrites or keeps those changes. Without a record, the paths at which the live object differs
            from `main`.
        edited: The objects of `changed` that are written only because someone has changed them at these paths.
        fresh: The helpers named by their content that the live main object does not name. No serving pod uses them,
            so they can be created and deleted at any time.
        retained: Live helpers that the provider no longer renders and the main object still uses.
        moved: The applied manifest, if the CRD has since moved to another version and nothing else has to be written.
            Only the webhook can convert the manifest to the new version, so drift is checked in the old version.
    """

    main: Object
    helpers: list[Object]
    changed: list[Object]
    recreate: str | None = None
    drifted: tuple[str, ...] = ()
    edited: tuple[tuple[Object, tuple[str, ...]], ...] = ()
    fresh: tuple[Object, ...] = ()
    retained: tuple[Object, ...] = ()
    moved: Object | None = None
    overwritten: tuple[str, ...] = ()

    @property
    def repairs(self) -> list[tuple[Object, tuple[str, ...]]]:
        """Objects to correct, and the paths that someone has changed; empty if the plan makes any other change."""
        if self.drifted:
            return [(self.main, self.drifted)]
        return list(self.edited) if len(self.edited) == len(self.changed) else []

    @property
    def objects(self) -> list[Object]:
        """All objects of the plan, in the order in which they are written."""
        return [*self.helpers, self.main]


def plan(
    provider: Provider,
    deployment: Deployment,
    schema: Schema,
    rendered: Rendered,
    live: Object | None,
    live_helpers: Iterable[Object],
    remembered: manifest.Record | None = None,
    *,
    converts: bool = True,
    admission: Admission | None = None,
    last_record: manifest.LastRecord | None = None,
) -> Plan:
    """Decide which upstream objects to write.

    Args:
        provider: The provider that applies the objects.
        deployment: The ModelDeployment.
        schema: The schema of the upstream CRD.
        rendered: The provider's render of the ModelDeployment.
        live: The live main object, None if there is none.
        live_helpers: The live helpers of the ModelDeployment.
        remembered: The record of the previous main object, used if there is no main object now.
        converts: Whether a webhook converts between the CRD's versions. Without it, they differ only in their names.
        admission: The values that the API server stored for earlier applies. They do not count as drift.
        last_record: Reads the record of the live main object; None to unpack it here.
    """
    inputs = _Inputs(
        provider, deployment, schema, rendered, marked(live_helpers), converts, admission or Admission()
    )
    record = (last_record or manifest.LastRecord()).of(live) if live else remembered
    applied = _read_applied(inputs, live, record)
    merged = _merge(inputs, applied)
    if live is None:
        changed = [*_different(merged.helpers, inputs.helpers, inputs.admission), merged.main]
        return Plan(merged.main, merged.helpers, changed, retained=merged.retained)
    return _compare(inputs, applied, merged, live)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The arguments of `plan`, with the live helpers by kind and name."""

    provider: Provider
    deployment: Deployment
    schema: Schema
    rendered: Rendered
    helpers: dict[Mark, Object]
    converts: bool
    admission: Admission

    @property
    def ignored(self) -> Sequence[str]:
        """Paths that the provider leaves to others."""
        return foreign_values.paths(self.provider)


@dataclass(frozen=True, slots=True)
class _Applied:
    """The last apply.

    Attributes:
        record: The record of the main object as far as the live object agrees with it, None if there is none.
        plain: `record` with the helpers' names as the provider renders them.
        base: This provider's render of the spec that was applied; None if the manifest is replaced as a whole.
        differences: The live values that differ from `record`, by path. Empty without a `base`, or if the record is
            of another version.
        names: For each rendered name of a helper, the name that the main object uses.
        helpers: The live helpers by kind and rendered name.
    """

    record: manifest.Record | None
    plain: manifest.Record | None
    base: Rendered | None
    differences: dict[str, Any]
    names: dict[str, str]
    helpers: dict[Mark, Object]


@dataclass(frozen=True, slots=True)
class _Merged:
    """The user's change, merged into the applied objects.

    Attributes:
        rendered: The objects with the helpers' rendered names.
        main: The main object to apply.
        helpers: The helpers to apply, under the names that they get in the cluster.
        retained: Live helpers that are no longer rendered and that the main object still uses.
    """

    rendered: Rendered
    main: Object
    helpers: list[Object]
    retained: tuple[Object, ...]


def _read_applied(inputs: _Inputs, live: Object | None, record: manifest.Record | None) -> _Applied:
    """Read the base of the three-way merge from the live objects and the record of the main object."""
    version, rendered = inputs.schema.api_version, inputs.rendered
    if record is not None and not inputs.converts:
        record = manifest.in_version(record, version)
    base = earlier_render(inputs.provider, inputs.deployment, inputs.schema, record, rendered)
    differences: dict[str, Any] = {}
    # A tenant may have forged the record. It can be compared only in the version in which it was written.
    if record and live and base and record.manifest.get("apiVersion") == version:
        record, differences = record_trust.compared(record, live, base.main, inputs.ignored)
    paths = inputs.provider.named_by_content
    used = helper_names.names_in_use(paths, rendered.main, record.manifest if record else live)
    # The manifest of a main object that is gone can be used again only if the helpers that it names still exist.
    if record and not live and not retained_helpers.complete(paths, record.manifest, used, inputs.helpers):
        base = None
    plain = replace(record, manifest=helper_names.plain(paths, record.manifest, used)) if record else None
    return _Applied(record, plain, base, differences, used, _by_plain_name(inputs.helpers, used))


def _merge(inputs: _Inputs, applied: _Applied) -> _Merged:
    """Merge the user's change into the applied objects, and give the helpers their names in the cluster."""
    provider, deployment, rendered = inputs.provider, inputs.deployment, inputs.rendered
    paths, base, live_helpers = provider.named_by_content, applied.base, applied.helpers
    before = _helpers_before(provider, deployment, inputs.schema, rendered, base, applied.plain, live_helpers)
    desired = merge.merged(provider, rendered, base, applied.plain, before)
    retained = retained_helpers.find(paths, desired, base, applied.plain, live_helpers)
    named = helper_names.with_cluster_names(
        paths, desired, applied.names, live_helpers, _untouched(base, rendered)
    )
    main = manifest.with_ownership(
        named.main, deployment, provider.name, rendered.image, provider.propagates, provider.pod_defaults
    )
    helpers = [
        manifest.with_ownership(obj, deployment, provider.name, rendered.image) for obj in named.helpers
    ]
    return _Merged(desired, main, helpers, retained)


def _compare(inputs: _Inputs, applied: _Applied, merged: _Merged, live: Object) -> Plan:
    """Compare the merged objects with the live ones."""
    provider, record, base, main = inputs.provider, applied.record, applied.base, merged.main
    changed = _different(merged.helpers, inputs.helpers, inputs.admission)
    if record is None or base is None:
        changed.append(main)
    elif _only_version_differs(record, main, base, inputs.rendered):
        if not changed:
            return Plan(main, merged.helpers, [], retained=merged.retained, moved=record.manifest)
    elif not same(manifest.content(main), record.manifest):
        changed.append(main)
    has_new_content = _has_new_content(changed, main, base, inputs.rendered)
    recreation = _recreation(inputs, applied, merged.rendered, live) if has_new_content else None
    foreign: tuple[str, ...] = ()
    if record is not None:
        foreign = inputs.admission.changed_by_others(mark(main), record.manifest, applied.differences)
    if recreation is None:
        # A new object begins with the rendered counts.
        foreign_values.keep(provider, main, live, base, inputs.rendered)
        if record is not None:
            shared_entries.carry(shared_entries.paths(provider, live), main, live, record.manifest)
        else:
            # Without a record, for instance after `kubectl replace`, the object to write shows what others changed.
            content = {
                name: value for name, value in main.items() if name not in ("apiVersion", "kind", "metadata")
            }
            differences = drift.values(content, live, inputs.ignored)
            foreign = inputs.admission.changed_by_others(mark(main), recorded(main), differences)
    edited = _edits(inputs, changed, main, live)
    fresh = _fresh(inputs, applied, merged.helpers)
    drifted, overwritten = ((), foreign) if changed else (foreign, ())
    return Plan(
        main,
        merged.helpers,
        changed,
        recreation,
        drifted,
        edited,
        fresh,
        merged.retained,
        overwritten=overwritten,
    )


def _has_new_content(
    changed: Sequence[Object], main: Object, base: Rendered | None, rendered: Rendered
) -> bool:
    """Check whether the render differs from the applied one. A helper that somebody changed is only written again."""
    if any(obj is main for obj in changed):
        return True
    return bool(changed) and (base is None or not alike(base, rendered))


def _recreation(inputs: _Inputs, applied: _Applied, desired: Rendered, live: Object) -> str | None:
    """Return why the main object has to be deleted before the change, None if it can be changed in place."""
    if inputs.provider.must_recreate(live):
        return f"{inputs.provider.title} ignores further changes of the old object"
    record, spec = applied.plain, inputs.deployment.spec
    if record is None:
        return None
    try:
        before = ModelDeploymentSpec.model_validate(record.spec)
    except ValidationError:
        before = spec
    if fields := identity_changed(before, spec):
        return f"{', '.join(fields)} changed"
    earlier = (applied.base or inputs.rendered).helpers
    helpers = tuple(_applied_helper(obj, applied.helpers) for obj in earlier)
    return inputs.provider.recreate(Rendered(manifest.body(record.manifest), helpers), desired)


def _edits(
    inputs: _Inputs, changed: Iterable[Object], main: Object, live: Object
) -> tuple[tuple[Object, tuple[str, ...]], ...]:
    """Return the objects that are written only because somebody has changed them, with the changed paths."""
    edited = []
    for obj in changed:
        live_obj = live if obj is main else inputs.helpers.get(mark(obj))
        if paths := _edited_paths(obj, live_obj, inputs.ignored, inputs.admission):
            edited.append((obj, paths))
    return tuple(edited)


def _fresh(inputs: _Inputs, applied: _Applied, helpers: Iterable[Object]) -> tuple[Object, ...]:
    """Return the helpers named by their content that the live main object does not name."""
    names_in_use = {obj["metadata"]["name"] for obj in inputs.rendered.helpers} | set(applied.names.values())
    return tuple(obj for obj in helpers if obj["metadata"]["name"] not in names_in_use)


def _only_version_differs(record: manifest.Record, main: Object, base: Rendered, rendered: Rendered) -> bool:
    """Check whether only the CRD's version has changed. The API server converts the object, so no write is needed."""
    return (
        record.manifest.get("apiVersion") != main["apiVersion"]
        and record.manifest["metadata"] == manifest.content(main)["metadata"]
        and alike(base, rendered)
    )


def _by_plain_name(live_helpers: dict[Mark, Object], used: dict[str, str]) -> dict[Mark, Object]:
    """Return the live helpers by kind and the names that a render gives them."""
    plain = {name: plain for plain, name in used.items()}
    others = {helper_mark: obj for helper_mark, obj in live_helpers.items() if helper_mark[1] not in used}
    return others | {(kind, plain[name]): obj for (kind, name), obj in live_helpers.items() if name in plain}


def _untouched(base: Rendered | None, rendered: Rendered) -> set[Mark]:
    """Return the helpers that the user's change does not affect."""
    old = marked(base.helpers) if base else {}
    return {
        helper_mark
        for obj in rendered.helpers
        if (helper_mark := mark(obj)) in old and same(manifest.body(old[helper_mark]), manifest.body(obj))
    }


def _helpers_before(
    provider: Provider,
    deployment: Deployment,
    schema: Schema,
    rendered: Rendered,
    base: Rendered | None,
    record: manifest.Record | None,
    live_helpers: dict[Mark, Object],
) -> dict[Mark, tuple[Object, Object]]:
    """Return for each live helper its applied manifest, and this provider's render of the spec behind that manifest.

    That spec may differ from the main object's: a change that affects only the helper writes only the helper.
    """
    manifests = {}
    for helper, live in live_helpers.items():
        helper_record = manifest.applied(live)
        if helper_record is None:
            continue
        is_same_apply = record is not None and helper_record == replace(
            record, manifest=helper_record.manifest
        )
        earlier = (
            base if is_same_apply else earlier_render(provider, deployment, schema, helper_record, rendered)
        )
        for obj in earlier.helpers if earlier else ():
            if mark(obj) == helper:
                manifests[helper] = (record_trust.trusted(helper_record, live, obj).manifest, obj)
    return manifests


def _applied_helper(obj: Object, live_helpers: dict[Mark, Object]) -> Object:
    """Return the last applied manifest of a helper; if somebody has deleted the helper, this provider's render."""
    live = live_helpers.get(mark(obj))
    record = manifest.applied(live) if live else None
    return manifest.body(record.manifest if record else obj)


def _different(desired: Sequence[Object], live: dict[Mark, Object], admission: Admission) -> list[Object]:
    """Return the helpers that do not exist, differ from the last apply, or have been changed by others."""
    different = []
    for obj in desired:
        live_helper = live.get(mark(obj))
        record = manifest.applied(live_helper) if live_helper else None
        if (
            live_helper is None
            or record is None
            or not same(manifest.content(obj), record.manifest)
            or admission.changed_by_others(
                mark(obj), record.manifest, drift.values(record.manifest, live_helper)
            )
        ):
            different.append(obj)
    return different


def _edited_paths(
    desired: Object, live: Object | None, ignored_differences: Sequence[str], admission: Admission
) -> tuple[str, ...]:
    """Return the paths at which someone has changed an object that we want unchanged.

    Return none if we want to change the object.
    """
    if live is None:
        return ()
    if names.APPLIED_ANNOTATION not in (live["metadata"].get("annotations") or {}):
        return (manifest.RECORD_PATH,)
    record = manifest.applied(live)
    if record is None or not same(record.manifest, manifest.content(desired)):
        return ()
    differences = drift.values(record.manifest, live, ignored_differences)
    return admission.changed_by_others(mark(desired), record.manifest, differences)
