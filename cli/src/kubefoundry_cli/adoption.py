"""Find the spec that renders an existing upstream object, and check that it renders exactly that object."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from kubefoundry_cli import adopted_arguments, adopted_storage, upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model import NO_UID, valid_stored
from kubefoundry_cli.provenance import Leaves, Path, at_or_below, leaves
from kubefoundry_cli.spec_path import ABSENT, with_value
from kubefoundry_cli.upstream import Change
from kubefoundry_sdk._api import foreign_yaml, managed_fields, names
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import validate
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import NotReadable, PodDefaults, Provider
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import documents, drift, foreign_values, manifest
from kubefoundry_sdk._provider.write.helpers import mark, marked
from kubefoundry_sdk._provider.write.plan import Plan, plan

KEPT = ("model.id", "model.source", "engine.type", "provider.name", "image")
"""Fields that are never removed, not even default values: model, engine, provider and image."""

Measure = TypeVar("Measure")


@dataclass(frozen=True, slots=True)
class Adoption:
    """A ModelDeployment for an existing upstream object.

    Attributes:
        obj: The ModelDeployment.
        write_plan: The upstream objects as their provider would apply them.
        changes: The values that an apply would change; empty if the object can be adopted.
        missing: The rendered helpers that do not exist.
        unstated: Number of live values that the ModelDeployment does not render, defaults of the API server included.
    """

    obj: Object
    write_plan: Plan
    changes: tuple[Change, ...]
    missing: tuple[str, ...]
    unstated: int

    @property
    def fits(self) -> bool:
        """Check whether the ModelDeployment renders exactly the live objects."""
        return not self.changes and not self.missing


class Distance(NamedTuple):
    """Distance between a spec and a live object; the first field that differs decides which of two specs is closer.

    Attributes:
        wrong: Number of validation errors, or else of the provider's refusals.
        different: Number of values that only one side has, at any index of a list, and of missing helpers.
        moved: Number of differences by exact path. An extra argument shifts all arguments after it.
        unstated: Number of live values that the spec does not render. An apply removes them from a list that it
            replaces.
    """

    wrong: int
    different: int = 0
    moved: int = 0
    unstated: int = 0


def adoption(provider: Provider, schema: Schema, live: Object, helpers: Sequence[Object]) -> Adoption:
    """Return the closest ModelDeployment for a live upstream object.

    Args:
        provider: The provider that would adopt the object.
        schema: The schema that the provider writes for.
        live: The upstream object.
        helpers: The live helpers that may belong to it.

    Raises:
        Failure: The provider cannot read the object back, or would refuse the ModelDeployment.
    """
    guesses = _read_back(provider, live, helpers)

    def distance(candidate: Object) -> Distance:
        return _distance(provider, schema, candidate, live, helpers)

    def values(candidate: Object) -> tuple[Leaves, int] | None:
        """Return what would be written, and how much of it is only kept, such as replicas without `scaling`."""
        if distance(candidate).wrong:
            return None
        comparison = compared(provider, schema, candidate, live, helpers)
        objects = [manifest.content(item) for item in comparison.write_plan.objects]
        return upstream.flattened(provider, objects, flags=True), comparison.unstated

    specs = [form for guess in guesses for form in adopted_storage.forms(guess)]
    obj = min((model(live, _named(spec, provider.name)) for spec in specs), key=distance)
    # While the spec is refused, its render is unknown.
    obj = _without_fields(obj, distance, lambda new, old: new.wrong < old.wrong)
    if distance(obj).moved:
        # An argument that the provider adds itself has another position in the spec's arguments.
        obj = _without_fields(obj, values, operator.eq)
        forms = adopted_arguments.forms(obj["spec"], live)
        obj = min((obj, *(model(live, spec) for spec in forms)), key=distance)
    obj = _simplest(obj, distance)
    problems = upstream.problems(provider, valid_stored(obj), schema)
    if problems:
        raise Failure(
            f"{provider.title} would refuse a ModelDeployment for {live['kind']} '{live['metadata']['name']}': "
            f"{'; '.join(problems)}"
        )
    return compared(provider, schema, obj, live, helpers)


def _read_back(provider: Provider, live: Object, helpers: Sequence[Object]) -> Sequence[Object]:
    """Return the specs that the provider reads from the objects. Raises Failure."""
    name, kind = live["metadata"]["name"], live["kind"]
    if provider.read_back is None:
        raise Failure(f"the package of provider '{provider.name}' cannot read a {kind} back into a spec")
    try:
        return provider.read_back(live, helpers)
    except NotReadable as error:
        raise Failure(
            f"{kind} '{name}' cannot be a ModelDeployment of provider {provider.name}: {error}"
        ) from error
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise Failure(
            f"{kind} '{name}' has a shape that provider {provider.name} never writes: {error!r}"
        ) from error


def _named(spec: Object, provider: str) -> Object:
    fields = {"name": provider, **(spec.get("provider") or {})}
    return {**spec, "provider": {key: value for key, value in fields.items() if value}}


def model(live: Object, spec: Object) -> Object:
    """Return a ModelDeployment of the spec with the object's name, as if it were stored."""
    meta = live["metadata"]
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": NO_UID, "generation": 1},
        "spec": spec,
    }


def compared(
    provider: Provider, schema: Schema, obj: Object, live: Object, helpers: Sequence[Object]
) -> Adoption:
    """Render a valid ModelDeployment, and compare the result with the live objects.

    The spec states each setting of the pods itself. The administrator's settings would restart the pods.
    """
    provider = replace(provider, pod_defaults=PodDefaults())
    deployment = read(valid_stored(obj))
    rendered = results.render(provider, deployment, schema)
    main = with_live_texts(provider, live, with_pod_labels_of(live, rendered.main))
    rendered = replace(rendered, main=main)
    write_plan = plan(provider, deployment, schema, rendered, live, helpers)
    pairs = [(_bare(write_plan.main, rendered.main), live)]
    live_helpers, missing = marked(helpers), []
    for helper, bare in zip(write_plan.helpers, rendered.helpers, strict=True):
        if (live_helper := live_helpers.get(mark(helper))) is None:
            missing.append(f"{helper['kind']} '{helper['metadata']['name']}'")
        else:
            pairs.append((_bare(helper, bare), live_helper))
    others = foreign_values.paths(provider)
    changes = [
        change for applied, current in pairs for change in _changes(provider, applied, current, others)
    ]
    unstated = sum(len(content(current).keys() - content(applied)) for applied, current in pairs)
    # The plan leaves these counts to autoscalers, but the spec still has to state them.
    counts = [path.split(".") for path in provider.scaled]
    unstated += sum(not same(documents.at(rendered.main, path), documents.at(live, path)) for path in counts)
    return Adoption(obj, write_plan, tuple(changes), tuple(missing), unstated)


def content(obj: Object) -> Leaves:
    """Return the values of the object without metadata and status, which neither users nor the provider write."""
    return leaves({key: value for key, value in obj.items() if key not in ("metadata", "status")})


def with_pod_labels_of(live: Any, rendered: Any) -> Any:
    """Return the rendered value without the label of the ModelDeployment on pods that run without that label.

    A new label would restart the pods, and nothing needs it.
    """
    if isinstance(rendered, Mapping):
        live_map = live if isinstance(live, Mapping) else {}
        result = {}
        for key, value in rendered.items():
            if key == names.MODEL_LABEL and key not in live_map:
                continue
            part = with_pod_labels_of(live_map.get(key), value)
            if part or not value:
                result[key] = part
        return result
    if isinstance(rendered, list):
        return [with_pod_labels_of(_peer(live, item, place), item) for place, item in enumerate(rendered)]
    return rendered


def with_live_texts(provider: Provider, live: Object, rendered: Object) -> Object:
    """Replace each rendered document by the live text if both have the same content.

    An edit in place keeps the order of the keys in a document, and a new render has another order. An apply of the
    rendered text would change the object.
    """
    for document in provider.documents:
        if document.kind != rendered.get("kind"):
            continue
        text, new = (documents.at(obj, document.path) for obj in (live, rendered))
        if isinstance(text, str) and isinstance(new, str) and _have_samecontent(text, new):
            rendered = documents.replaced(rendered, document.path, text)
    return rendered


def _have_samecontent(text: str, other: str) -> bool:
    if text == other:
        return True
    try:
        return same(foreign_yaml.decode(text), foreign_yaml.decode(other))
    except foreign_yaml.Unreadable:
        return False


def _peer(live: Any, item: Any, place: int) -> Any:
    """Return the item of the live list that has the same name, or else the same place."""
    items = live if isinstance(live, list) else []
    name = item.get("name") if isinstance(item, Mapping) else None
    if name is not None:
        return next(
            (other for other in items if isinstance(other, Mapping) and other.get("name") == name), None
        )
    return items[place] if place < len(items) else None


def taken_over(live: Object, tried: Object, manager: str) -> list[Object]:
    """Return `managedFields` of the object with the manager as the only owner of the fields that it applies.

    The creator of the object would otherwise own these fields, too. A value that a later edit of the ModelDeployment
    removes would then stay.

    Args:
        live: The object.
        tried: The answer to the manager's dry run.
        manager: The provider's field manager.
    """
    [entry] = [entry for entry in tried["metadata"]["managedFields"] if _applied_by(entry, manager)]
    entries = [entry]
    for live_entry in live["metadata"].get("managedFields") or ():
        if live_entry.get("subresource"):
            entries.append(live_entry)
        elif not _applied_by(live_entry, manager) and (
            left := managed_fields.without(live_entry.get("fieldsV1") or {}, entry["fieldsV1"])
        ):
            entries.append({**live_entry, "fieldsV1": left})
    return entries


def _applied_by(entry: Object, manager: str) -> bool:
    whose = (entry.get("manager"), entry.get("operation"), entry.get("subresource", ""))
    return whose == (manager, "Apply", "")


def _bare(applied: Object, rendered: Object) -> Object:
    """Return the applied object without owner, namespace, and our labels and annotations, which restart nothing."""
    meta = rendered["metadata"]
    fields = {
        part: {key: value for key, value in meta[part].items() if not key.startswith(names.PREFIX)}
        for part in ("labels", "annotations")
        if part in meta
    }
    return {**applied, "metadata": {**fields, "name": applied["metadata"]["name"]}}


def _changes(provider: Provider, target: Object, live: Object, others: Sequence[str]) -> list[Change]:
    """Return the values at which the live object differs from the target."""
    changes = []
    values = [upstream.flattened(provider, [obj]) for obj in (live, target)]
    for path in drift.differences(target, live, others):
        before, after = (at_or_below(part, f"{target['kind']}.{path}") for part in values)
        for leaf_path in sorted(before.keys() | after.keys()):
            old, new = before.get(leaf_path, ABSENT), after.get(leaf_path, ABSENT)
            if old != new:
                changes.append(Change(leaf_path, old, new, ()))
    return changes


def _simplest(obj: Object, distance: Callable[[Object], Distance]) -> Object:
    """Return the model without fields that its render does not need: defaults, and options that the provider adds."""
    obj = _without_fields(obj, distance, operator.lt)
    return _without_fields(obj, distance, lambda new, old: new <= old and not new.wrong)


def _without_fields(
    obj: Object, measure: Callable[[Object], Measure], is_better: Callable[[Measure, Measure], bool]
) -> Object:
    """Return the model without the fields whose removal is better, by the measures after and before it."""
    best, score = obj, measure(obj)
    for path in leaves(best["spec"]):
        if ".".join(path) in KEPT or any("[" in step for step in path):
            continue
        trial = {**best, "spec": _pruned(with_value(best["spec"], path, ABSENT), path[:-1])}
        if is_better(found := measure(trial), score):
            best, score = trial, found
    return best


def _pruned(spec: Object, path: Path) -> Object:
    """Remove the objects on the path that have become empty."""
    while path:
        value: Any = spec
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value != {}:
            return spec
        spec, path = with_value(spec, path, ABSENT), path[:-1]
    return spec


def _distance(
    provider: Provider, schema: Schema, obj: Object, live: Object, helpers: Sequence[Object]
) -> Distance:
    """Return the distance between the rendered and the live object. An extra argument counts once."""
    wrong = len(validate(obj["spec"]))
    if not wrong:
        wrong = len(upstream.problems(provider, valid_stored(obj), schema))
    if wrong:
        return Distance(wrong)
    comparison = compared(provider, schema, obj, live, helpers)
    count: Counter[tuple[Path, str]] = Counter()
    for change in comparison.changes:
        place = tuple("[]" if re.fullmatch(r"\[\d+\]", step) else step for step in change.path)
        for value, sign in ((change.old, -1), (change.new, 1)):
            if value is not ABSENT:
                count[place, repr(value)] += sign
    different = sum(map(abs, count.values())) + len(comparison.missing)
    return Distance(0, different, len(comparison.changes), comparison.unstated)
