"""Every recorded run of a real operator, as its provider reads it: Ready names no generation that does not serve yet.

The recordings also hold the pods, so that the truth is known: the version of each pod is in its name. Prints the
figures of each recording (`-s`). Recorded statuses of Dynamo are also read with parts missing or unknown.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from kubefoundry_dynamo.provider import with_defaults as dynamo
from kubefoundry_kaito.provider import with_defaults as kaito
from kubefoundry_kuberay.provider import with_defaults as kuberay
from kubefoundry_sdk._provider.contract import Deployment, Observation, Provider
from kubefoundry_sdk._provider.health.steadiness import Steadiness
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.reported_generation import Generations, Snapshot, judge, note_applied
from kubefoundry_sdk.testing.generated import deployment
from support.timelines import State, recordings, states
from support.upstream import requires_shared

pytestmark = [pytest.mark.upstream, requires_shared]

FLAP: Final = 1.0
"""Seconds. A phase that lasts less is none that a user should see."""

NEVER: Final = float("inf")

POD: Final = re.compile(r"(?P<name>[a-z]+)-(?P<part>frontend|vllm\w*worker)-(?P<version>[0-9a-f]+)-")
"""Of Dynamo: a worker's version is the hash of its spec, the frontend's is that of its ReplicaSet."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """A state of the upstream object as the provider reads it. claims: whether Ready may name its generation."""

    time: float
    generation: int
    observation: Observation
    claims: bool


@dataclass(slots=True)
class Pods:
    """Which versions of each component are ready, from which time on."""

    ready: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Component and version by the pod's name."""
    newest: dict[str, str] = field(default_factory=dict)
    """The version of the pod that was created last, by component."""

    def put(self, state: State, part: str, version: str) -> None:
        if state.event == "ADDED":
            self.newest[part] = version
        is_ready = state.status.get("ready") == ["True"] and not state.deleting and state.event != "DELETED"
        if is_ready:
            self.ready[state.name] = (part, version)
        else:
            self.ready.pop(state.name, None)


def of(kind: str) -> list[str]:
    return [path.stem for path in recordings() if path.stem.startswith(f"{kind}-")]


def seen_by(provider: Provider, asked: Mapping[int, Deployment], found: list[State]) -> Iterator[Seen]:
    """What the provider reads, and whether the runtime may report the newest generation (contract §3)."""
    first: dict[int, float] = {}
    steadiness = Steadiness()
    for state in found:
        generation = state.generation or 1
        live: dict[str, Any] = {
            "metadata": {"name": state.name, "uid": "u", "generation": generation},
            "status": dict(state.status),
        }
        if state.deleting:
            live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        seen, _ = steadiness.keep("u", provider.observe(asked[generation], live), state.time)
        observed = state.status.get("observedGeneration")
        claims = (
            seen.phase == "Running"
            and not (seen.updating or seen.update_failed)
            and (observed is None or observed >= generation)
        )
        if claims:
            first.setdefault(generation, state.time)
        yield Seen(state.time, generation, seen, claims)


def ready_from(provider: Provider, found: list[Seen], end: float) -> dict[int, float]:
    """Since when Ready names each generation: the first claim that outlasts the time to settle."""
    ready: dict[int, float] = {}
    for number, seen in enumerate(found):
        until = found[number + 1].time if number + 1 < len(found) else end
        if not seen.claims or seen.generation in ready:
            continue
        began = next(item.time for item in found if item.claims and item.generation == seen.generation)
        settled = began if seen.generation == 1 else began + provider.settles
        if max(settled, seen.time) < until:
            ready[seen.generation] = max(settled, seen.time)
    return ready


def phases(found: list[Seen]) -> list[tuple[str, float]]:
    """The phases in order, each with the seconds that it lasted; the last one lasts."""
    starts: list[tuple[str, float]] = []
    for seen in found:
        if not starts or starts[-1][0] != seen.observation.phase:
            starts.append((seen.observation.phase, seen.time))
    ends = [start for _, start in starts[1:]] + [NEVER]
    return [(phase, round(end - start, 2)) for (phase, start), end in zip(starts, ends, strict=True)]


def flaps(found: list[Seen]) -> list[str]:
    """Moments of Failed, and of anything but Running between two times of Running."""
    lasted = phases(found)
    between = zip(lasted, lasted[1:], lasted[2:], strict=False)
    return [phase for phase, seconds in lasted if phase == "Failed" and seconds < FLAP] + [
        phase
        for (before, _), (phase, seconds), (after, _) in between
        if before == after == "Running" and seconds < FLAP
    ]


def first_life(recording: str, name: str) -> list[State]:
    """All states of a recording until the graph is deleted: some recreate it."""
    found = []
    for state in states(recording):
        if state.event == "DELETED" and state.kind == "dynamographdeployments" and state.name == name:
            break
        found.append(state)
    return found


def graphs(recording: str) -> set[str]:
    return {state.name for state in states(recording, "dynamographdeployments")}


def requested(found: list[State]) -> Mapping[int, Counts]:
    """The replicas of each worker that each generation requests, as the operator reached them."""
    wanted: dict[int, dict[str, int]] = {}
    before: dict[str, int] = {}
    for generation in sorted({state.generation or 1 for state in found}):
        now = dict(before)
        for state in (state for state in found if (state.generation or 1) == generation):
            status = state.status
            counts = status.get("services") or status.get("components") or {}
            reached = status.get("state") == "successful" and status.get("observedGeneration") == generation
            for name, count in counts.items():
                if name != "Frontend" and (reached or name not in before):
                    now[name] = count["replicas"]
        wanted[generation] = before = now
    return wanted


def asked_for(counts: Counts) -> Deployment:
    model: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}}
    if any("Prefill" in name for name in counts):
        roles = {role: counts.get(f"Vllm{role.capitalize()}Worker", 0) for role in ("prefill", "decode")}
        scaling = {role: {"replicas": count, "gpu": {"count": 1}} for role, count in roles.items()}
        return deployment({**model, "serving": {"mode": "disaggregated"}, "scaling": scaling})
    replicas = counts.get("VllmWorker", 1)
    return deployment({**model, "scaling": {"replicas": replicas}, "resources": {"gpu": {"count": 1}}})


def targets(history: list[State], name: str) -> dict[int, dict[str, str]]:
    """The version of each component that each generation leads to."""
    pods, found, generation = Pods(), {}, 1
    reached = False
    for state in history:
        if state.kind == "dynamographdeployments" and state.name == name:
            generation = state.generation or 1
            reached = state.status.get("state") == "successful"
            reached = reached and state.status.get("observedGeneration") == generation
        elif state.kind == "pods" and (match := POD.match(state.name)) and match["name"] == name:
            pods.put(state, match["part"], match["version"])
        ready = dict(pods.ready.values())
        found[generation] = {**pods.newest, **ready} if reached else dict(pods.newest)
    return found


def measured(
    history: list[State], name: str, since: Mapping[int, float], found: list[Seen]
) -> tuple[float, float]:
    """Seconds of Ready at the newest generation in which a pod of another version was ready, and in which a component
    had no ready pod. The operator itself learns of a lost pod a moment later."""
    target = targets(history, name)
    parts = {part for versions in target.values() for part in versions}
    pods, old, nothing = Pods(), 0.0, 0.0
    events = sorted(
        [(state.time, 0, state) for state in history if state.kind == "pods" and POD.match(state.name)]
        + [(seen.time, 1, seen) for seen in found],
        key=lambda entry: entry[:2],
    )
    current: Seen | None = None
    for number, (time, _, event) in enumerate(events):
        if isinstance(event, Seen):
            current = event
        elif (match := POD.match(event.name)) and match["name"] == name:
            pods.put(event, match["part"], match["version"])
        until = events[number + 1][0] if number + 1 < len(events) else time
        if current is None or current.observation.phase != "Running":
            continue
        begins = since.get(current.generation)
        if begins is None:
            continue
        seconds = max(0.0, until - max(time, begins))
        wanted = target[current.generation]
        old += seconds * any(version != wanted.get(part, version) for part, version in pods.ready.values())
        nothing += seconds * ({part for part, _ in pods.ready.values()} != parts)
    return old, nothing


@pytest.mark.parametrize("recording", of("dynamo"))
def test_dynamo_is_ready_only_when_no_old_pod_serves(recording: str) -> None:
    provider = dynamo()
    for name in sorted(graphs(recording)):
        history = first_life(recording, name)
        found = [state for state in history if (state.kind, state.name) == ("dynamographdeployments", name)]
        asked = {generation: asked_for(counts) for generation, counts in requested(found).items()}
        seen = list(seen_by(provider, asked, found))
        since = ready_from(provider, seen, found[-1].time + provider.settles + 1)

        old, nothing = measured(history, name, since, seen)

        edits = {generation: round(time, 2) for generation, time in since.items()}
        print(
            f"{recording} {name}: old {1000 * old:.0f} ms, nothing {1000 * nothing:.0f} ms, Ready from {edits}"
        )
        assert old == 0
        assert flaps(seen) == []
        for state in seen:
            counts = state.observation.replicas
            assert counts.available <= counts.desired
            assert counts.ready <= counts.desired


UNKNOWN: Final = ("", "words of a newer release")
"""Replacements of each text by which the operator explains its state."""

Path = tuple[str | int, ...]


def parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of each part of a status."""
    if not isinstance(value, dict | list):
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key), child
        yield from parts(child, (*path, key))


def at(status: Any, path: Path) -> Any:
    for key in path:
        status = status[key]
    return status


def worded(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the status as it is, and with each of its messages and reasons unknown, alone and together."""
    texts = [path for path, _ in parts(status) if path[-1] in ("message", "reason")]
    yield status
    for chosen in [[path] for path in texts] + [texts]:
        for words in UNKNOWN:
            changed = copy.deepcopy(status)
            for path in chosen:
                at(changed, path[:-1])[path[-1]] = words
            yield changed


def damaged(status: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the status with unknown words, and each of those without one of its parts or with one of a wrong type."""
    for changed in worded(copy.deepcopy(dict(status))):
        yield changed
        for path, _ in parts(changed):
            without, wrong = copy.deepcopy(changed), copy.deepcopy(changed)
            del at(without, path[:-1])[path[-1]]
            yield without
            at(wrong, path[:-1])[path[-1]] = ["of a wrong type"]
            yield wrong


def is_reached(state: State) -> bool:
    """Check whether the operator reports success for the generation of the object."""
    ready: Mapping[str, Any] = next(iter(state.status.get("conditions") or ()), {})
    seen = max(state.status.get("observedGeneration", 0), ready.get("observedGeneration", 0))
    return state.status.get("state") == "successful" and seen == (state.generation or 1)


def names_edit(provider: Provider, model: Deployment, state: State, status: Mapping[str, Any]) -> bool:
    """Check whether Ready names an edit that was applied, once any time to settle is over."""
    generation = state.generation or 1
    live = {"metadata": {"name": state.name, "uid": "u", "generation": generation}, "status": status}
    seen = provider.observe(model, live)
    if seen.phase != "Running":
        return False
    ready = {"type": "Ready", "status": "True", "observedGeneration": generation - 1}
    edited = {
        "metadata": {"name": state.name, "namespace": "models", "generation": generation},
        "status": {"observedGeneration": generation - 1, "conditions": [ready]},
    }
    generations, report = Generations(), Report(generation)
    note_applied(generations, report, live)
    looks = (
        Snapshot(edited, live, report, seen, provider, "manager", time, names_generation=True)
        for time in (0.0, provider.settles + 1)
    )
    return [judge(generations, look) for look in looks][-1] is None


@pytest.mark.parametrize("recording", of("dynamo"))
def test_dynamo_edit_is_held_until_success_whatever_the_words(recording: str) -> None:
    provider = dynamo()
    early, tried = [], 0
    for name in sorted(graphs(recording)):
        history = first_life(recording, name)
        found = [state for state in history if (state.kind, state.name) == ("dynamographdeployments", name)]
        models = {generation: asked_for(counts) for generation, counts in requested(found).items()}
        for state in (state for state in found if (state.generation or 1) > 1 and not is_reached(state)):
            for status in damaged(state.status):
                tried += 1
                if names_edit(provider, models[state.generation or 1], state, status):
                    early.append((state.line, status))

    print(
        f"{recording}: {tried} statuses, {len(early)} early, in lines {sorted({line for line, _ in early})}"
    )
    assert early == []


SERVES_FROM: Final[Mapping[str, Mapping[int, float]]] = {
    "kuberay-main-create": {},
    "kuberay-1.6.2-edit": {
        3: 32.51,  # application RUNNING again
        6: 76.47,  # the Service selects the new cluster
    },
    "kuberay-1.6.2-fail": {4: 45.16, 5: NEVER},
    "kuberay-1.6.2-validate": {4: NEVER, 5: 42.77},
}
"""When the edit of each generation serves, as a reader of the recording sees it."""


@pytest.mark.parametrize("recording", of("kuberay"))
def test_kuberay_is_ready_only_when_the_edit_serves(recording: str) -> None:
    provider = kuberay()
    one = deployment(
        {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
    )
    found = list(states(recording, "rayservices"))
    name = found[0].name
    found = [state for state in found if state.name == name]
    asked = {state.generation or 1: one for state in found}
    seen = list(seen_by(provider, asked, found))

    since = ready_from(provider, seen, found[-1].time + provider.settles + 1)

    early = {
        generation: serves - since[generation]
        for generation, serves in SERVES_FROM[recording].items()
        if since.get(generation, NEVER) < serves
    }
    print(f"{recording}: Ready from { {generation: round(time, 2) for generation, time in since.items()} }")
    assert early == {}
    assert [phase for phase in flaps(seen) if phase == "Failed"] == []


@pytest.mark.parametrize("recording", of("kaito"))
def test_kaito_does_not_flap(recording: str) -> None:
    provider = kaito()
    one = deployment(
        {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
    )
    for name in sorted({state.name for state in states(recording, "workspaces")}):
        found = [state for state in states(recording, "workspaces") if state.name == name]

        seen = list(seen_by(provider, {state.generation or 1: one for state in found}, found))

        print(f"{recording} {name}: {phases(seen)}")
        assert flaps(seen) == []
