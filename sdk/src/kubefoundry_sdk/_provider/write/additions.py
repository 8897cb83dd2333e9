"""Additions: fields of an upstream object that others wrote beside ours, by its `metadata.managedFields`.

They stay (contract §4.19), but may change what serves, so the provider names them. The API server records no owner
for its own defaults, or for a field that admission adds to a write, so these are not additions. Whoever may edit the
object may edit `managedFields`, too, so this is a hint for the user, and only the report depends on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import UNKNOWN, pattern
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.write import drift, list_keys
from kubefoundry_sdk._provider.write.server_values import DEFAULTS

SHOWN: Final = 5
"""The most fields that a message names."""

DEPTH: Final = 64
"""Levels of an object that are read. A pod template has about ten; a tenant may nest thousands."""

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The field manager to which the API server assigns all fields of an object without managedFields, once somebody
applies it. The real writer is unknown."""

_MISSING: Final = object()

_HEAD: Final = ("f:metadata", "f:status", "f:apiVersion", "f:kind")
"""Fields of an object that are not compared."""

_REPLACING: Final = frozenset({"command", "args", "image"})
"""Fields that decide which program a container runs."""

_SERVING: Final = _REPLACING | {
    "affinity",
    "claims",
    "containers",
    "dnsConfig",
    "env",
    "envFrom",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "imagePullSecrets",
    "initContainers",
    "lifecycle",
    "nodeSelector",
    "priorityClassName",
    "resourceClaims",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "shareProcessNamespace",
    "tolerations",
    "topologySpreadConstraints",
    "volumeMounts",
    "volumes",
}
"""Fields that decide how a pod serves. An atomic list or map has one owner as a whole, so only these of its keys are
reported. Any other key may be a default of the CRD: KubeRay owns worker groups because it writes them back."""

_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
"""Annotation by which `kubectl rollout restart` replaces pods with equal ones."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A field that somebody else wrote beside ours.

    Attributes:
        path: The path of the field: `spec.template.spec.containers[engine].command`.
        writer: The field manager.
        replaces: Whether the field decides which program a container of ours runs.
    """

    path: str
    writer: str
    replaces: bool


def added(
    manifest: Object, live: Object, manager: str, ignored_differences: Sequence[str] = ()
) -> list[Addition]:
    """Return the additions to a live object, in the order of its managedFields.

    If the manifest of the last apply has a pod template, only additions to the template count, because the other
    fields decide when pods run and not how. Fields in another version than the object's are skipped, because they
    cannot be compared. `manager` is the provider's field manager, which writes only by server-side apply. Fields at
    and below the paths in `ignored_differences` belong to others, and are no additions.
    """
    if manifest.get("apiVersion") != live.get("apiVersion"):
        return []
    root, entries = _root(manifest), _entries(live)
    own = next((_fields(entry) for entry in entries if _is_own(entry, manager)), {})
    ignored = {pattern(path) for path in ignored_differences}
    additions: dict[str, Addition] = {}
    for entry in entries:
        is_own = _is_own(entry, manager)
        place = _Place(manifest, live)
        for path in _walk(_fields(entry), {} if is_own else own, place, root, lists=not is_own):
            addition = _addition(path, entry, manager)
            if addition and not _is_within(pattern(path), ignored):
                additions.setdefault(path, addition)
    return list(additions.values())


def _entries(live: Object) -> list[Mapping[str, Any]]:
    """Return the entries of managedFields about the object itself, in its version."""
    version = live.get("apiVersion")
    return [
        entry
        for entry in live["metadata"].get("managedFields") or ()
        if not entry.get("subresource") and entry.get("apiVersion", version) == version
    ]


def _addition(path: str, entry: Mapping[str, Any], manager: str) -> Addition | None:
    """Return the addition by the manager of an entry, None for a value that may come from no user."""
    is_reset = entry.get("manager") == BEFORE_FIRST_APPLY
    # After a reset of managedFields, values from admission and defaults of a CRD have an owner, too.
    if is_reset and _key(path) not in _SERVING:
        return None
    return Addition(path, _writer(entry, manager), _replaces(path) and not is_reset)


def text(named: str, additions: Sequence[Addition]) -> str:
    """Return the additions to the named object in one clause for the user, empty if there are none."""
    if not additions:
        return ""
    fields = [
        f"{', '.join(addition.path for addition in group)} ({writer})"
        for writer, group in itertools.groupby(additions[:SHOWN], lambda addition: addition.writer)
    ]
    more = f" and {len(additions) - SHOWN} more" if len(additions) > SHOWN else ""
    return f"{named} has fields that others added: {', '.join(fields)}{more}; they are left as they are"


def together(texts: Sequence[str]) -> str:
    """Return the clauses of several objects (`text`) in one, of at most SHOWN objects; empty if there are none."""
    stated = [words for words in texts if words]
    more = f"; others added fields to {len(stated) - SHOWN} more objects" if len(stated) > SHOWN else ""
    return "; ".join(stated[:SHOWN]) + more


def replacing(named: str, additions: Sequence[Addition]) -> str:
    """Return why the provider's spec does not serve, empty if no addition replaces a program."""
    paths = [addition.path for addition in additions if addition.replaces]
    if not paths:
        return ""
    return f"others added {first_of(paths)} to {named}, so other programs run; remove it there"


def redirecting(named: str, manifest: Object, live: Object) -> str:
    """Return why clients of a Service reach no pod of the model, empty if they may.

    `manifest` is that of the provider's last apply to the helper.
    """
    external = "ExternalName"
    types = [mapping(obj.get("spec")).get("type") for obj in (live, manifest)]
    if live.get("kind") != "Service" or types[0] != external or types[1] == external:
        return ""
    return f"others gave {named} the type {external}, so its clients reach other programs; set its type to ClusterIP"


class _Place:
    """A place in an object: the value that was applied there, and the live one."""

    __slots__ = ("_above", "_items", "_step", "applied", "live")

    def __init__(self, applied: Any, live: Any, above: _Place | None = None, step: str | list_keys.Keys = ""):
        self.applied = applied
        self.live = live
        self._above = above
        self._step = step
        self._items: tuple[list_keys.Items, list_keys.Items] | None = None

    @property
    def path(self) -> str:
        """The path. Most places are looked at and not reported, so it is built on request."""
        if self._above is None:
            return ""
        if isinstance(self._step, str):
            return f"{self._above.path}.{self._step}".removeprefix(".")
        return f"{self._above.path}[{'/'.join(map(str, self._step.values()))}]"

    @property
    def replaces(self) -> bool:
        """Whether this field decides which program a container runs."""
        return isinstance(self._step, str) and _replaces(self._step)

    def applies(self, key: str) -> bool:
        """Check whether we applied the field that a key of fieldsV1 names. Items of a list are not looked up."""
        return isinstance(self.applied, dict) and key.startswith("f:") and key[2:] in self.applied

    def below(self, key: str) -> _Place | None:
        """Return the place that a key of fieldsV1 names, None if the live object has none."""
        kind, _, name = key.partition(":")
        if kind == "f":
            live = self.live.get(name, _MISSING) if isinstance(self.live, dict) else _MISSING
            applied = self.applied.get(name, _MISSING) if isinstance(self.applied, dict) else _MISSING
            return None if live is _MISSING else _Place(applied, live, self, name)
        keys = list_keys.read(name) if kind == "k" else None
        if keys is None:
            return None
        if self._items is None:
            self._items = list_keys.Items(self.applied), list_keys.Items(self.live)
        applied, live = (items.get(keys, _MISSING) for items in self._items)
        return None if live is _MISSING else _Place(applied, live, self, keys)


def _walk(
    fields: Any, own: Mapping[str, Any], place: _Place, root: Sequence[str], depth: int = 0, *, lists: bool
) -> Iterator[str]:
    """Yield the paths below `root` that `fields` names and `own` does not.

    `lists`: whether to compare the content of an atomic list or map that we applied, and that now belongs to the
    owner of `fields` as a whole.
    """
    if depth > DEPTH or not isinstance(fields, dict):
        return
    for key, below in fields.items():
        if not _is_below(key, root, depth) or (not lists and not below and place.applies(key)):
            continue
        child = place.below(key)
        if child is not None and key in own:
            yield from _walk(below, own[key] or {}, child, root, depth + 1, lists=lists)
        elif child is not None:
            yield from _unowned(key, below, child, root, depth, lists)


def _unowned(
    key: str, below: Any, child: _Place, root: Sequence[str], depth: int, lists: bool
) -> Iterator[str]:
    """Yield the additions at and below a place that our entry does not name."""
    if child.applied is _MISSING or (lists and child.replaces and same(child.applied, child.live)):
        # Report a value that equals the record, too, because the record may be forged. A value that differs is drift.
        if not _is_trivial(child.live, key.removeprefix("f:")):
            yield child.path
    elif isinstance(below, dict) and below.keys() - {"."}:
        yield from _walk(below, {}, child, root, depth + 1, lists=lists)
    elif lists:
        yield from _extras(child.applied, child.live, child.path)


def _is_below(key: str, root: Sequence[str], depth: int) -> bool:
    """Check whether a key of fieldsV1 at that depth is on the way to `root` or below it."""
    if depth < len(root):
        return key == f"f:{root[depth]}"
    return key != "." and (depth > 0 or key not in _HEAD)


def _extras(applied: Any, live: Any, path: str, depth: int = 0) -> Iterator[str]:
    """Yield the paths of live fields and list items that decide how pods serve and were not applied."""
    if depth > DEPTH:
        return
    if isinstance(applied, dict) and isinstance(live, dict):
        for key, value in live.items():
            if key in applied:
                yield from _extras(applied[key], value, f"{path}.{key}", depth + 1)
            elif key in _SERVING and not _is_trivial(value, key):
                yield f"{path}.{key}"
    elif isinstance(applied, list) and isinstance(live, list):
        yield from _further_items(applied, live, path, depth)


def _further_items(applied: list[Any], live: list[Any], path: str, depth: int) -> Iterator[str]:
    """Yield the additions inside the items of a list, and the added items.

    Items are matched by name, or by index if names are missing or repeated. An added item counts only if its list is
    in `_SERVING` (containers, variables), if it has a pod template, or if it repeats the name of another item: then
    one of the two is not ours.
    """
    named = drift.distinct_by(applied, "name")
    applied_items = {item["name"]: item for item in applied} if named else dict(enumerate(applied))
    seen: set[Any] = set()
    for index, value in enumerate(live):
        name = mapping(value).get("name", index) if named else index
        mark = name if isinstance(name, str | int) else index
        if mark in seen:
            yield f"{path}[{mark}]"
        elif mark in applied_items:
            yield from _extras(applied_items[mark], value, f"{path}[{mark}]", depth + 1)
        elif path.rpartition(".")[2] in _SERVING or ("template" in mapping(value)):
            yield f"{path}[{mark}]"
        seen.add(mark)


def _is_within(path: str, ignored: Collection[str]) -> bool:
    """Check whether an ignored path is the path, or above it."""
    return any(path == above or path.startswith((f"{above}.", f"{above}[")) for above in ignored)


def _is_trivial(value: Any, key: str) -> bool:
    """Check whether a value means no more than a missing field, such as a zero value or a default."""
    if isinstance(value, dict):
        return all(_is_trivial(part, name) for name, part in value.items())
    return not value or key == _RESTARTED or value in DEFAULTS.get(key, ())


def _replaces(path: str) -> bool:
    return path.rpartition(".")[2] in _REPLACING


def _key(path: str) -> str:
    """Return the last key of a path, without the item of a list."""
    return path.rpartition(".")[2].partition("[")[0]


def _root(manifest: Object) -> Sequence[str]:
    spec = manifest.get("spec")
    return ("spec", "template") if isinstance(spec, dict) and isinstance(spec.get("template"), dict) else ()


def _is_own(entry: Mapping[str, Any], manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply"


def _fields(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return entry.get("fieldsV1") or {}


def _writer(entry: Mapping[str, Any], manager: str) -> str:
    writer = entry.get("manager")
    return UNKNOWN if not writer or writer in (manager, BEFORE_FIRST_APPLY) else str(writer)
