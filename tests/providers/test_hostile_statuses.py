"""Thousands of nonsensical statuses: `Ready` names the newest generation only with proof, and counts have bounds.

The proofs are those that contract §3 and the providers' READMEs state, read here without the providers' code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings
from kubefoundry_dynamo.provider import with_defaults as dynamo
from kubefoundry_kaito.provider import with_defaults as kaito
from kubefoundry_kuberay.provider import with_defaults as kuberay
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Observation, Provider
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.reported_generation import Generations, Snapshot, judge, note_applied
from kubefoundry_sdk.testing.generated import deployment
from support.hostile_statuses import Statuses

PROVIDERS: Final[Mapping[str, Provider]] = {
    "direct": direct(Settings()),
    "dynamo": dynamo(),
    "kuberay": kuberay(),
    "kaito": kaito(),
}
NUMBERED: Final = frozenset({"dynamo", "kuberay"})
"""Providers whose CRD declares `status.observedGeneration`: Dynamo's from 1.0 on."""
NUMBER: Final = 2000
"""Statuses of each provider: about a second on an idle machine."""
SEED: Final = 2
LONG: Final = 1000.0
"""Seconds, longer than any status takes to settle."""
CLOSED: Final[Mapping[str, str]] = {
    "Ready": "True",
    "UpgradeInProgress": "False",
    "Suspended": "False",
    "RollbackInProgress": "False",
}
"""Statuses of KubeRay's conditions that do not contradict that the newest spec serves."""

OBSTACLES: Final = (
    "an update is in progress",
    "rolling out: ",
    "does not report success for the newest spec: ",
    "it is unclear whether the newest spec serves: ",
    "the Dynamo operator reports a failure: ",
    "the latest change failed: ",
    "the KubeRay operator ",
    "; the Dynamo operator ",
)
"""Parts of messages that say why a serving model stays at an earlier spec."""

Drawn = tuple[int, int, dict[str, Any]]


def drawn(provider: str) -> Iterator[Drawn]:
    """The generation of the upstream object, the replicas that are requested, and its status."""
    statuses = Statuses(SEED)
    for _ in range(NUMBER):
        generation, wanted = statuses.random.choice((2, 3)), statuses.random.choice((1, 2, 3))
        wanted = 1 if provider == "kaito" else wanted
        yield generation, wanted, statuses.draw(provider, generation, wanted)


def upstream(provider: str, generation: int, wanted: int, status: Any) -> dict[str, Any]:
    """The object as it stands after an edit, with a status that was written later than that."""
    entries = [
        {"manager": f"{provider}-provider", "operation": "Apply", "time": "2026-01-01T00:00:01Z"},
        {"manager": "o", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:05Z"},
    ]
    meta = {
        "name": "m",
        "namespace": "models",
        "uid": "u",
        "generation": generation,
        "managedFields": entries,
    }
    spec = {"replicas": wanted} if provider == "direct" else {}
    return {"apiVersion": "x/v1", "kind": "X", "metadata": meta, "spec": spec, "status": status}


@cache
def model_of(replicas: int) -> Deployment:
    spec: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}}
    return deployment({**spec, "resources": {"gpu": {"count": 1}}, "scaling": {"replicas": replicas}})


def observed(provider: str, drawn: Drawn) -> tuple[Observation, bool]:
    """What the provider reads, and whether Ready is True at the newest generation, 4, after 3 has served."""
    generation, wanted, status = drawn
    model = model_of(wanted)
    live = upstream(provider, generation, wanted, status)
    seen = results.observe(PROVIDERS[provider], model, live)
    if seen.phase != "Running":
        return seen, False
    ready = {"type": "Ready", "status": "True", "observedGeneration": 3}
    thing = {
        "metadata": {"name": "m", "namespace": "models", "generation": 4},
        "spec": {},
        "status": {"observedGeneration": 3, "conditions": [ready]},
    }
    generations, report = Generations(), Report(4)
    note_applied(generations, report, live)
    looks = (
        Snapshot(
            thing, live, report, seen, PROVIDERS[provider], f"{provider}-provider", now, provider in NUMBERED
        )
        for now in (0.0, LONG)
    )
    return seen, [judge(generations, look) for look in looks][-1] is None


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def conditions(status: Mapping[str, Any], type_: str) -> list[dict[str, Any]]:
    stated = status.get("conditions")
    found = stated if isinstance(stated, list) else []
    return [item for item in found if isinstance(item, dict) and item.get("type") == type_]


def lacks_pods(pods: Any) -> bool:
    """Whether the counts show no ready pod, or one that may be of an earlier spec."""
    if not isinstance(pods, dict):
        return True
    counts = {name: value if is_number(value) else 0 for name, value in pods.items()}
    ready = counts.get("readyReplicas", counts.get("availableReplicas", 0))
    most = max(
        (counts.get(name, 0) for name in ("replicas", "readyReplicas", "availableReplicas")), default=0
    )
    return ready == 0 or counts.get("updatedReplicas", most) < most


def disproof_of_direct(generation: int, status: Mapping[str, Any]) -> str:
    if not is_number(status.get("observedGeneration")) or status["observedGeneration"] != generation:
        return "it does not name the generation"
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    pods = {name: status[name] if is_number(status.get(name)) else 0 for name in names}
    if not pods["availableReplicas"]:
        return "no pod is available"
    pods["readyReplicas"] = max(pods["readyReplicas"], pods["availableReplicas"])
    return "pods may be of an earlier spec" if lacks_pods(pods) else ""


def disproof_of_dynamo(generation: int, status: Mapping[str, Any]) -> str:
    if "observedGeneration" in status and (
        not is_number(status["observedGeneration"]) or status["observedGeneration"] != generation
    ):
        return "it names another generation"
    found = conditions(status, "Ready")
    if status.get("state") == "successful" and any(ready.get("status") != "True" for ready in found):
        return "state and condition contradict each other"
    # Of several with the same status, the last one counts.
    for ready in found[-1:]:
        if ready.get("reason") in ("rolling_update_in_progress", "rolling_update_failed"):
            return "a rolling update"
    if status.get("state") not in ("successful", "pending"):
        return "its state is neither successful nor pending"
    if "observedGeneration" not in status and not any(
        is_number(ready.get("observedGeneration")) and ready["observedGeneration"] == generation
        for ready in found
    ):
        return "it names no generation"
    counts = status.get("services") or status.get("components")
    if not {"observedGeneration", "services", "components"} & set(status):
        return ""  # nothing but condition Ready names the generation, and nothing counts pods
    named = counts if isinstance(counts, dict) else {}
    if lacks_pods(named.get("Frontend")) or lacks_pods(named.get("VllmWorker")):
        return "pods of a component are missing, or may be of an earlier spec"
    return ""


def disproof_of_kuberay(generation: int, status: Mapping[str, Any]) -> str:
    if not is_number(status.get("observedGeneration")) or status["observedGeneration"] != generation:
        return "it does not name the generation"
    if not is_number(status.get("numServeEndpoints")) or not status["numServeEndpoints"]:
        return "no endpoint"
    for type_, usual in CLOSED.items():
        for item in conditions(status, type_):
            if item.get("status") != usual and item.get("reason") != "ValidationFailed":
                return f"{type_} is {item.get('status')!r}"
    active = status.get("activeServiceStatus")
    applications = active.get("applicationStatuses") if isinstance(active, dict) else None
    if not isinstance(applications, dict) or not applications:
        return "no application"
    for application in applications.values():
        if not isinstance(application, dict) or application.get("status") != "RUNNING":
            return "an application does not run"
    return ""


def disproof_of_kaito(generation: int, status: Mapping[str, Any]) -> str:
    inference = conditions(status, "InferenceReady")
    if any(item.get("status") != "True" for item in inference):
        return "inference is not ready"
    return "" if inference or status.get("state") == "Ready" else "nothing serves"


DISPROOFS: Final[Mapping[str, Callable[[int, Mapping[str, Any]], str]]] = {
    "direct": disproof_of_direct,
    "dynamo": disproof_of_dynamo,
    "kuberay": disproof_of_kuberay,
    "kaito": disproof_of_kaito,
}


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_nonsense_is_no_proof_and_has_bounds(provider: str) -> None:
    proven = 0
    for generation, wanted, status in drawn(provider):
        seen, is_ready = observed(provider, (generation, wanted, status))

        context = f"generation {generation}, {wanted} replicas: {status}"
        counts = seen.replicas
        assert 0 <= counts.available <= counts.ready <= counts.desired == wanted, context
        assert counts.ready > 0 or seen.phase != "Running", context
        assert seen.message, context
        # Provider direct quotes Kubernetes' words about a rollout that failed.
        is_held = seen.updating or (seen.update_failed and provider != "direct")
        if is_held and seen.phase == "Running":
            assert any(words in seen.message for words in OBSTACLES), f"{seen.message!r}: {context}"
        if is_ready:
            proven += 1
            assert DISPROOFS[provider](generation, status) == "", context

    # What a sound operator writes is among them.
    assert proven > NUMBER / 100
