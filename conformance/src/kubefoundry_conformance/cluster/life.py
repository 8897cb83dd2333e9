"""WRI, OBS, STA: the upstream object and the status during the life of a ModelDeployment."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.settings import QUIET, RESTARTED
from kubefoundry_conformance.cluster.waiting import NotSeen, condition, phase
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.reasons import READY, RESOURCE_CREATED
from kubefoundry_sdk._cluster.errors import ApiError

PAUSED: Final = "reconciliation paused"
MOST: Final = 5
"""Repairs in ten minutes (contract §4)."""

NOT_CONTENT: Final = ("apiVersion", "kind", "metadata", "status")


async def check_metadata(rig: Rig) -> Finding | None:
    """Check owner reference, labels and uid annotation of an upstream object."""
    place = rig.place()
    deployment = await rig.create(place)
    meta, uid = (await rig.upstream(place))["metadata"], deployment["metadata"]["uid"]
    owner = {"uid": uid, "controller": True, "blockOwnerDeletion": True}
    if not any(owner.items() <= reference.items() for reference in meta.get("ownerReferences") or ()):
        return Finding(f"ownerReferences {meta.get('ownerReferences')}", f"controller and owner {uid}")
    labels = {names.MANAGED_BY_LABEL: names.MANAGED_BY, f"{names.PREFIX}provider": rig.provider}
    if not labels.items() <= (meta.get("labels") or {}).items():
        return Finding(f"labels {meta.get('labels')}", f"{labels}")
    if (meta.get("annotations") or {}).get(names.OWNER_UID_ANNOTATION) != uid:
        return Finding(f"no annotation {names.OWNER_UID_ANNOTATION}", uid)
    return None


async def check_finalizer_first(rig: Rig) -> Finding | None:
    """Check in the audit log that the subject adds its finalizer before it writes the upstream object."""
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    for entry in rig.writes(place):
        about = entry["objectRef"]
        if about["resource"] == rig.kind.plural:
            return Finding(
                f"the first write is {entry['verb']} {about['resource']}", f"finalizer {rig.finalizer}"
            )
        if about["resource"] == names.MODEL_DEPLOYMENTS and not about.get("subresource"):
            live = await rig.deployment(place)
            if rig.finalizer not in (live["metadata"].get("finalizers") or ()):
                return Finding(f"finalizers {live['metadata'].get('finalizers')}", rig.finalizer)
            return None
    return Finding("no write of a finalizer", rig.finalizer)


async def check_foreign_object(rig: Rig) -> Finding | None:
    """Check that the subject reports `NameConflict`, and leaves a foreign object unchanged."""
    first, place = rig.place(), rig.place()
    await rig.create(first)
    template = await rig.upstream(first)
    body = {
        "apiVersion": rig.kind.api_version,
        "kind": rig.kind.kind,
        "metadata": {"name": place.name, "namespace": place.namespace},
        **copy.deepcopy(_content(template)),
    }
    foreign_object = await rig.api.create(rig.kind, body, manager="somebody")
    await rig.create(place)
    await rig.deployment(place, lambda obj: condition(obj, RESOURCE_CREATED).get("reason") == "NameConflict")
    live = await rig.api.get(rig.kind, *place)
    if live["metadata"]["resourceVersion"] != foreign_object["metadata"]["resourceVersion"]:
        return Finding("the object of somebody else was changed", "it is left as it is")
    return None


def _content(obj: Object) -> Object:
    """Return the content of an object: its `spec`, or the fields that replace it, as in a Workspace of KAITO."""
    return {key: value for key, value in obj.items() if key not in NOT_CONTENT}


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the JSON pointers of texts, each with an edited text."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _texts(child, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, f"{path}/{index}")
    elif isinstance(value, str) and value:
        yield path, f"{value}-edited"


def _value_at(obj: Object, pointer: str) -> Any:
    part: Any = obj
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        part = part[int(name)] if isinstance(part, list) else part.get(name)
    return part


async def check_drift(rig: Rig) -> Finding | None:
    """Edit a text of the upstream object again and again, and expect MOST repairs and no more.

    Raises:
        Skipped: The API server refuses an edit of every text in the object.
    """
    place = rig.place()
    await rig.create(place)
    await rig.deployment(place, lambda obj: condition(obj, RESOURCE_CREATED).get("status") == "True")
    live = await rig.upstream(place)
    for pointer, value in _texts(_content(live)):
        edit = partial(_edit, rig, place, pointer, value)
        try:
            await edit()
        except ApiError:
            continue
        return await _check_repairs(rig, place, pointer, _value_at(live, pointer), edit)
    raise Skipped("no text in the upstream object can be changed")


async def _edit(rig: Rig, place: Place, pointer: str, value: Any) -> None:
    change = [{"op": "replace", "path": pointer, "value": value}]
    await rig.api.json_patch(rig.kind, *place, change, manager="somebody")


async def _check_repairs(
    rig: Rig, place: Place, pointer: str, good: Any, edit: Callable[[], Awaitable[None]]
) -> Finding | None:
    """Check that the subject repairs an edited value MOST times and then stops."""
    for _ in range(MOST):
        await rig.upstream(place, lambda obj: _value_at(obj, pointer) == good)
        await edit()
    try:
        await rig.until(
            rig.kind, *place, lambda obj: obj is not None and _value_at(obj, pointer) == good, seconds=QUIET
        )
    except NotSeen:
        return None
    return Finding(f"{pointer} was put back {MOST + 1} times at once", f"{MOST} times in ten minutes at most")


async def check_pause(rig: Rig) -> Finding | None:
    """Check that the subject writes nothing for a paused ModelDeployment, and continues after the pause.

    A subject that has not reported on a model shows nothing of its own while it obeys, and one that does not obey may
    be late. So also pause a model on which it has reported: its message is then the subject's (contract §10, Pause).
    """
    place, other = rig.place(), rig.place()
    await rig.create(place, annotations={names.PAUSED_ANNOTATION: "true"})
    await rig.deployment(place, _is_paused)
    await rig.create(other)
    # The other one shows that the subject had time to act.
    await rig.upstream(other)
    if objects := await rig.stored(place):
        return Finding(f"{rig.kind.kind} {objects[0]['metadata']['name']} was made", "nothing")
    await rig.deployment(other, lambda obj: condition(obj, RESOURCE_CREATED).get("status") == "True")
    live = await rig.upstream(other)
    await rig.annotate(other, names.PAUSED_ANNOTATION, "true")
    await rig.deployment(other, _is_paused)
    if _content(await rig.upstream(other)) != _content(live):
        return Finding(f"{rig.kind.kind} {live['metadata']['name']} was changed", "nothing")
    await rig.annotate(place, names.PAUSED_ANNOTATION, None)
    await rig.upstream(place)
    return None


def _is_paused(obj: Object) -> bool:
    return (obj.get("status") or {}).get("message") == PAUSED


async def check_dry_run(rig: Rig) -> Finding | None:
    """Check that a dry run reports its result in the annotation, and stores no object and no finalizer."""
    place = rig.place()
    await rig.create(place, annotations={names.DRY_RUN_ANNOTATION: "true"})

    def answered(obj: Object) -> str | None:
        return (obj["metadata"].get("annotations") or {}).get(names.DRY_RUN_RESULT_ANNOTATION)

    live = await rig.deployment(place, answered)
    try:
        result = json.loads(answered(live) or "")
        complete = {"accepted", "message"} <= result.keys()
    except ValueError:
        complete = False
    if not complete:
        return Finding(f"dry-run-result {answered(live)!r}", "JSON with accepted, message and objects")
    await rig.deployment(place, lambda obj: condition(obj, RESOURCE_CREATED).get("reason") == "DryRun")
    objects = await rig.stored(place)
    if objects or live["metadata"].get("finalizers"):
        return Finding(
            f"{len(objects)} objects, finalizers {live['metadata'].get('finalizers')}", "nothing is stored"
        )
    return None


async def check_endpoint(rig: Rig) -> Finding | None:
    """Check every state of a model from its creation until it stops serving for an endpoint without Running.

    An upstream that never reports a failure starts again, as after the loss of its pods.
    """
    place, last = rig.place(), rig.case("Failed", "Deploying", "Pending")
    await rig.create(place)
    # The check reads every state: clients use an endpoint at once, even if the next write removes it.
    async with waiting.states(rig.api, MODEL_DEPLOYMENTS, *place) as states:
        await rig.upstream(place)
        seen = await rig.deployment(place, phase)
        if not _is_premature(seen):
            await rig.play(place, rig.case("Running"))
            seen = await waiting.first(
                states,
                lambda obj: _is_premature(obj) or (phase(obj) == "Running" and obj["status"].get("endpoint")),
            )
        if not _is_premature(seen):
            await rig.play(place, last)
            seen = await waiting.first(
                states, lambda obj: _is_premature(obj) or phase(obj) == last.expect.phase
            )
    if _is_premature(seen):
        return Finding(f"endpoint {seen['status']['endpoint']} while {phase(seen)}", "none")
    return None


def _is_premature(obj: Object) -> bool:
    return phase(obj) != "Running" and bool((obj.get("status") or {}).get("endpoint"))


async def check_status_manager(rig: Rig) -> Finding | None:
    """Check that only core and the subject own fields of the status, each under its own field manager."""
    place = rig.place()
    live = await rig.running(place)
    status_managers = managers(live, "status")
    expected = {names.CORE_MANAGER, rig.manager}
    if rig.manager not in status_managers or status_managers - expected:
        return Finding(f"the status was applied by {sorted(status_managers)}", f"{sorted(expected)}")
    return None


async def check_no_write_at_rest(rig: Rig) -> Finding | None:
    """Check that the subject writes nothing after edits of a foreign annotation. Events do not count."""
    place = rig.place()
    await rig.running(place)
    # By time, because the log may get the write that reported Running only after the status was seen. The API server
    # is on this machine.
    started = datetime.now(UTC)
    for number in range(3):
        await rig.annotate(place, "example.com/touched", str(number))
    await rig.running(rig.place())
    written = [
        f"{entry['verb']} {entry['requestURI'].partition('?')[0]}"
        for entry in rig.writes(place)
        if entry["objectRef"]["resource"] != "events"
        and datetime.fromisoformat(entry["requestReceivedTimestamp"]) >= started
    ]
    if written:
        return Finding(f"{written[0]} though nothing has changed", "no write")
    return None


async def check_transition_times(rig: Rig) -> Finding | None:
    """Check that `lastTransitionTime` of `Ready` stays if only reason and message change."""
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    first = condition(await rig.deployment(place, lambda obj: condition(obj, RESOURCE_CREATED)), READY)
    # Times have a resolution of a second: a new time differs only in the next one.
    await asyncio.sleep(1.1)
    await rig.play(place, rig.case("Deploying"))
    second = condition(await rig.deployment(place, lambda obj: phase(obj) == "Deploying"), READY)
    if first["status"] == second["status"] and first["lastTransitionTime"] != second["lastTransitionTime"]:
        return Finding("Ready stayed False and has another lastTransitionTime", first["lastTransitionTime"])
    return None


async def check_single_event(rig: Rig) -> Finding | None:
    """Check that a model that becomes ready has exactly one Event `DeploymentReady`."""
    place = rig.place()
    await rig.running(place)
    # An Event follows its transition, on a busy machine much later. A second one would come before the next model's.
    await waiting.event(rig.api, *place, "DeploymentReady", "")
    await rig.running(rig.place())
    about = await rig.events(place)
    ready = [item for item in about if item["reason"] == "DeploymentReady"]
    if len(ready) != 1 or ready[0].get("series"):
        return Finding(f"{len(ready)} Events DeploymentReady of {[item['reason'] for item in about]}", "one")
    return None


async def check_kill(rig: Rig) -> Finding | None:
    """Kill and restart the subject after each of its first writes, and expect that it completes the work.

    Each ModelDeployment must get its finalizer and its object, and disappear after its deletion.
    """
    for writes in (1, 2, 3):
        place = rig.place()
        await rig.create(place)
        await rig.deployment(place, lambda obj: True)
        for _ in range(400):
            if len(rig.writes(place)) >= writes:
                break
            await rig.api.get(MODEL_DEPLOYMENTS, *place)
        rig.subject.kill()
        rig.subject.start()
        rig.subject.wait_ready()
        await rig.deployment(
            place, lambda obj: condition(obj, RESOURCE_CREATED).get("status") == "True", seconds=RESTARTED
        )
        live = await rig.deployment(place)
        if rig.finalizer not in (live["metadata"].get("finalizers") or ()):
            return Finding(f"no finalizer after a kill after write {writes}", rig.finalizer)
        await rig.delete(place)
        # The third write may be the status. Then the new process may still wait for the Lease of the killed one.
        await rig.gone(place, seconds=RESTARTED)
    return None


CHECKS: Final = (
    of_rig("WRI-1", "a ModelDeployment's upstream object", check_metadata, "the object"),
    of_rig("WRI-3", "the first write for a ModelDeployment", check_finalizer_first, "the object"),
    of_rig("WRI-2", "an object of that name that somebody else made", check_foreign_object, "NameConflict"),
    of_rig("WRI-6", "an edit of the upstream object, six times", check_drift, "the value is put back"),
    of_rig("WRI-7", "a ModelDeployment that is paused", check_pause, f"message {PAUSED!r}"),
    of_rig("WRI-8", "a dry run", check_dry_run, "dry-run-result and ResourceCreated=DryRun"),
    of_rig(
        "OBS-6",
        "waiting, running, and failed or waiting again",
        check_endpoint,
        "an endpoint only while Running",
    ),
    of_rig("STA-1", "who owns the status", check_status_manager, "Running"),
    of_rig("STA-2", "three changes that change nothing", check_no_write_at_rest, "Running"),
    of_rig("STA-4", "a condition whose message changes", check_transition_times, "Deploying"),
    of_rig("STA-5", "Events of a model that gets ready", check_single_event, "Running"),
    of_rig("PRO-5", "SIGKILL after the first, second and third write", check_kill, "the work is continued"),
)
