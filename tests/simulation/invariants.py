"""The invariants, each with the rule that it comes from, and the checks of single writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Object
from simulation.facts import RECENT, Facts, is_registration
from simulation.policies import MODELS, UPSTREAM
from simulation.server import Write
from simulation.world import SELECTOR, component

INVARIANTS: Final = {
    # name: (what always holds, the rule of docs/contract.md or the decision that it comes from)
    "kept": (
        "Nothing that serves is deleted before the chosen provider has accepted a current generation",
        "contract §8",
    ),
    "tried": ("An object that serves is recreated only after a dry run of the new one", "WRI-4"),
    "ready": ("Ready names a generation only once pods of that generation have served", "OBS-10"),
    "future": ("No status names a generation that does not exist", "contract §3"),
    "marks": ("An upstream object is created with owner reference, labels, uid and record", "WRI-1"),
    "finalizer": ("The finalizer is there before the upstream object", "WRI-3"),
    "foreign": ("An object that is not the model's is not written", "WRI-2"),
    "uid": ("A deletion names the uid of the object that was decided on", "contract §10"),
    "version": ("A status is written with the uid and the resourceVersion that was read", "STA-1"),
    "useless": ("Nothing is written where nothing differs", "STA-2"),
    "transition": ("lastTransitionTime changes only with the status of the condition", "STA-4"),
    "stream": ("No object causes a stream of writes", "WRI-9"),
    "last-resort": (
        "A rule of last resort waits five minutes for a provider that was healthy",
        "contract §5",
    ),
    "sticky": ("A selection is kept until an edit, a reselect or a refusal", "SEL-3"),
    "endpoint": ("An endpoint is published only while the model serves", "OBS-6"),
    "counts": ("No more replicas are ready than requested", "contract §10"),
    "passing": ("An error that passes is not reported as a failure", "contract §4"),
    "stale": (
        "Ready does not outlive the pods: observing runs whatever happens to a write",
        "contract §4.20",
    ),
    "shown": ("A refusal that lasts is in an Event or in the status", "contract §4"),
    "unlisted": ("A kind that cannot be listed makes the registration not ready", "contract §4.2"),
    "alive": ("No input ends a process, and none causes an internal error", "contract §6"),
    "ends": ("After the last fault, every model serves its newest generation", "PRO-5"),
    "prompt": ("What passes by itself delays a model by little more than a minute", "contract §4"),
    "invented": ("A finalizer of a provider that never was holds no deletion", "contract §4.3"),
    "quiet": ("After that, nothing is written", "STA-2"),
    "records": ("Each upstream object has owner, labels, uid and record of its model", "WRI-1"),
    "alone": ("A provider that is not chosen has no object, no finalizer and no field", "STA-3"),
    "gone": ("Nothing is left of a deleted model", "LEV-1"),
    "equal": ("The end is that of a run without faults and history", "PRO-5"),
}

BURST: Final = 30
WINDOW: Final = 10.0
"""A component sends at most BURST writes to one object in WINDOW seconds: 20 without a delay follow a status that
does not settle (contract §4.21), and an edit costs some more."""

LAST_RESORT: Final = 280.0
"""Seconds for which a healthy provider is waited for, but for the age of the heartbeat (contract §5)."""


class Violation(NamedTuple):
    """A broken invariant, the time, and what was seen."""

    invariant: str
    at: float
    text: str


Check = Callable[[Facts, Write], Iterator[Violation]]


def check(facts: Facts, write: Write) -> Iterator[Violation]:
    """Yield the invariants that a write breaks. Call it before `facts.note`."""
    if not write.ok or write.is_dry or not write.by.startswith("kubefoundry-"):
        return
    for check_write in CHECKS:
        yield from check_write(facts, write)


def _broken(name: str, write: Write, text: str) -> Violation:
    return Violation(
        name,
        write.at,
        f"{write.by} {write.method} {'/'.join(write.place.storage)} {write.place.key[1]}: {text}",
    )


def _deletion(facts: Facts, write: Write) -> Iterator[Violation]:
    if write.method != "DELETE" or write.before is None:
        return
    if not ((write.body or {}).get("preconditions") or {}).get("uid"):
        yield _broken("uid", write, "without the uid")
    provider = write.by.removeprefix(component(""))
    operator = facts.world.operators.get(provider)
    if (
        operator is None
        or write.before["metadata"].get("deletionTimestamp")
        or not operator.serves(write.before)
    ):
        return
    model = _model(facts, write)
    if model is None or model["metadata"].get("deletionTimestamp"):
        return
    if model["metadata"]["uid"] not in _uids(write.before):
        return
    meta, chosen = model["metadata"], ((model.get("status") or {}).get("provider") or {}).get("name")
    oldest = facts.generation_at(meta["uid"], write.at - RECENT)
    if chosen == provider or not chosen:
        trial = facts.trials.get((write.by, meta["name"][:20]), -1.0)
        if trial < facts.last_edit(meta["uid"]) - RECENT and "quota" not in facts.world.server.policies:
            yield _broken("tried", write, f"no dry run since the edit (trial {trial:.1f} s)")
    elif not any(
        uid == meta["uid"] and by != provider and generation >= oldest
        for _, uid, by, generation in facts.acceptances
    ):
        yield _broken("kept", write, f"{chosen} has not accepted generation {meta['generation']}")


def _model(facts: Facts, write: Write) -> Object | None:
    return facts.world.server.store.get(MODELS, write.place.key)


def _uids(obj: Object) -> set[str]:
    meta = obj["metadata"]
    owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
    return owners | {(meta.get("annotations") or {}).get(names.OWNER_UID_ANNOTATION, "")}


def _status(facts: Facts, write: Write) -> Iterator[Violation]:
    if write.place.storage != MODELS or write.place.subresource != "status" or write.after is None:
        return
    sent = (write.body or {}).get("metadata") or {} if isinstance(write.body, dict) else {}
    if isinstance(write.body, dict) and not (sent.get("uid") and sent.get("resourceVersion")):
        yield _broken("version", write, "without uid or resourceVersion")
    before, after = ((obj or {}).get("status") or {} for obj in (write.before, write.after))
    generation = write.after["metadata"]["generation"]
    conditions = {item["type"]: item for item in after.get("conditions") or ()}
    earlier = {item["type"]: item for item in before.get("conditions") or ()}
    named = [
        after.get("observedGeneration"),
        *(item.get("observedGeneration") for item in conditions.values()),
    ]
    if any(number is not None and number > generation for number in named):
        yield _broken("future", write, f"{named} but the newest generation is {generation}")
    for type_, item in conditions.items():
        old = earlier.get(type_) or {}
        is_same = old.get("status") == item.get("status")
        if is_same and old.get("lastTransitionTime") != item.get("lastTransitionTime"):
            yield _broken("transition", write, f"{type_} stays {item.get('status')}")
    yield from _ready(facts, write, earlier.get(reasons.READY) or {}, conditions.get(reasons.READY) or {})
    yield from _published(facts, write, before, after)


def _ready(facts: Facts, write: Write, before: Object, after: Object) -> Iterator[Violation]:
    generation = after.get("observedGeneration")
    same = (before.get("status"), before.get("observedGeneration")) == ("True", generation)
    if after.get("status") != "True" or same or write.after is None:
        return
    name = write.after["metadata"]["name"]
    if facts.actions.tampered.get(name, -1e9) > write.at - RECENT:
        return
    if generation and not facts.has_run(write.after, generation):
        yield _broken("ready", write, f"Ready at generation {generation}, whose pods never served")


def _published(facts: Facts, write: Write, before: Object, after: Object) -> Iterator[Violation]:
    replicas = after.get("replicas") or {}
    ready, desired = int(replicas.get("ready") or 0), int(replicas.get("desired") or 0)
    if ready > desired > 0 and replicas != before.get("replicas"):
        yield _broken("counts", write, f"replicas {replicas}")
    is_new = after.get("endpoint") and not before.get("endpoint")
    is_tampered = facts.actions.tampered.get(write.place.key[1], -1e9) > write.at - RECENT
    if is_new and not is_tampered and after.get("phase") not in ("Running", "Terminating"):
        yield _broken("endpoint", write, f"published in phase {after.get('phase')}")
    if after.get("phase") == "Failed" != before.get("phase") and "has been modified" in str(
        after.get("message")
    ):
        yield _broken("passing", write, str(after.get("message")))


def _upstream(facts: Facts, write: Write) -> Iterator[Violation]:
    if write.place.storage not in UPSTREAM or write.method == "DELETE" or write.after is None:
        return
    model = _model(facts, write)
    uid = model["metadata"]["uid"] if model else ""
    if write.before is None:
        yield from _created(facts, write, model)
    elif not _uids(write.before) & {*facts.specs, uid} and not _may_be_given_back(write.before):
        yield _broken("foreign", write, "it has neither owner nor uid of a model")


def _may_be_given_back(obj: Object) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(names.APPLIED_ANNOTATION))


def _created(facts: Facts, write: Write, model: Object | None) -> Iterator[Violation]:
    assert write.after is not None
    sent = (write.body or {}).get("metadata") or {}
    missing = [text for text in marks(sent) if text]
    if missing:
        yield _broken("marks", write, f"created without {', '.join(missing)}")
    provider = write.by.removeprefix(component(""))
    if model is None or model["metadata"]["uid"] not in _uids(write.after):
        return
    name = model["metadata"]["name"]
    has = names.provider_finalizer(provider) in (model["metadata"].get("finalizers") or ())
    if not has and facts.removed.get(name, -1e9) < write.at - RECENT:
        yield _broken("finalizer", write, "the model has no finalizer of the provider")


def marks(meta: Object) -> list[str]:
    """Return the marks that the metadata of an upstream object lack."""
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    return [
        *([] if meta.get("ownerReferences") else ["owner reference"]),
        *(name for name in (names.MANAGED_BY_LABEL, f"{names.PREFIX}provider") if name not in labels),
        *(
            name
            for name in (
                names.OWNER_UID_ANNOTATION,
                names.APPLIED_ANNOTATION,
                names.APPLIED_GENERATION_ANNOTATION,
            )
            if name not in annotations
        ),
    ]


def _economy(facts: Facts, write: Write) -> Iterator[Violation]:
    if is_registration(write) or write.after is None:
        return
    version = (write.before or {}).get("metadata", {}).get("resourceVersion")
    if write.place.subresource == "status" and version == write.after["metadata"].get("resourceVersion"):
        yield _broken("useless", write, "the write changed nothing")
    same = [
        earlier
        for earlier in facts.writes[-3 * BURST :]
        if earlier.by == write.by and earlier.place == write.place and earlier.at > write.at - WINDOW
    ]
    if len(same) == BURST:
        yield _broken("stream", write, f"{BURST} writes in {write.at - same[0].at:.1f} s")


def _selection(facts: Facts, write: Write) -> Iterator[Violation]:
    if write.by != SELECTOR or write.place.storage != MODELS or write.after is None or write.before is None:
        return
    old, new = (
        ((obj.get("status") or {}).get("provider") or {}).get("name") for obj in (write.before, write.after)
    )
    if not new or old == new:
        return
    left = {
        item["name"].partition("/")[0]
        for item in ((write.after.get("status") or {}).get("selection") or {}).get("leftOut") or ()
    }
    if _priority(facts, new) < 0 and "gpu" in (write.after["spec"].get("resources") or {}):
        yield from _last_resort(facts, write, new, left)
    edited = facts.last_edit(write.after["metadata"]["uid"])
    chosen_at, reselect = facts.selected.get(write.place.key[1], (0.0, ""))
    is_kept = old and old not in left and edited < chosen_at and reselect == _reselect(write.after)
    if is_kept:
        yield _broken("sticky", write, f"moved from {old} to {new} without a reason")


def _last_resort(facts: Facts, write: Write, new: str, left: set[str]) -> Iterator[Violation]:
    for other in facts.world.providers:
        healthy = facts.world.healthy.get(other, -1e9)
        is_better = other != new and _priority(facts, other) >= 0 and other not in left
        is_seen = facts.world.disturbed[SELECTOR] < healthy
        if is_better and is_seen and write.at - healthy < LAST_RESORT:
            yield _broken("last-resort", write, f"{new} although {other} was healthy at {healthy:.0f} s")


def _reselect(model: Object) -> str:
    return str((model["metadata"].get("annotations") or {}).get(names.RESELECT_ANNOTATION) or "")


def _priority(facts: Facts, provider: str) -> int:
    config: Any = facts.world.server.store.get((names.GROUP, names.PROVIDER_CONFIGS), ("", provider)) or {}
    rules = (config.get("spec") or {}).get("selectionRules") or facts.world.rules.get(provider) or []
    return max((int(rule["priority"]) for rule in rules if "gpu" in rule["condition"]), default=-1)


CHECKS: Final[tuple[Check, ...]] = (_deletion, _status, _upstream, _economy, _selection)
