"""Workloads of Kueue: the stored ones, and the report about a waiting object."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.pod_status import ADMISSION_GATE
from kubefoundry_sdk._provider.watch.quota import REPLACED, Owner, QuotaWatch, trim

NO_QUOTA = "insufficient unused quota"


def workload(kind: str = "Pod", owner: str = "m-1", *, version: int = 1, **conditions: str) -> dict[str, Any]:
    """Return a Workload with a message for each condition; one that begins with `not` is False."""
    return {
        "metadata": {
            "name": f"w-{owner}",
            "namespace": "n",
            "resourceVersion": str(version),
            "ownerReferences": [{"kind": kind, "name": owner}],
        },
        "spec": {"queueName": "models"},
        "status": {
            "conditions": [
                {
                    "type": name,
                    "status": "False" if text.startswith("not ") else "True",
                    "message": text.removeprefix("not "),
                }
                for name, text in conditions.items()
            ]
        },
    }


def pod(name: str = "m-1", *gates: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
    }


UPSTREAM = {"kind": "RayService", "metadata": {"name": "m", "namespace": "n"}}


class Watched:
    """A watch with Workloads, and a clock that the test moves. Nothing of it reaches the process."""

    def __init__(self, *workloads: dict[str, Any]) -> None:
        self.now = 0.0
        self.reported: list[Owner] = []
        process: Any = None
        self.watch = QuotaWatch(process, "RayService", self.reported.append, lambda: self.now)
        self.watch.objects.replace(workloads, "1")

    def words(self, *pods: dict[str, Any]) -> str:
        cause = self.watch.cause(UPSTREAM, pods)
        return cause.message if cause else ""


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        (workload(), True),
        (workload(QuotaReserved=f"not {NO_QUOTA}"), True),
        (workload(QuotaReserved="yes"), False),
        (workload(QuotaReserved="yes", Evicted="Preempted"), True),
        (workload("Job"), False),
        (workload(owner="m" * 254), False),
    ],
    ids=["new", "waiting", "admitted", "evicted", "another kind", "invalid name"],
)
def test_trim_keeps_waiting_workloads(stored: dict[str, Any], kept: bool) -> None:
    assert (trim(stored, {"Pod", "RayService"}) is not None) == kept


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (
            [workload("RayService", "m")],
            "RayService 'm' waits for quota in queue models: Kueue gives no reason yet",
        ),
        (
            [workload("RayService", "m", QuotaReserved=f"not {NO_QUOTA}", Evicted="Preempted")],
            f"RayService 'm' waits for quota in queue models: {NO_QUOTA}; Kueue has evicted it: Preempted",
        ),
        ([workload(QuotaReserved=f"not {NO_QUOTA}")], f"pod m-1 waits for quota in queue models: {NO_QUOTA}"),
        ([workload(owner="other")], ""),
        ([], ""),
    ],
    ids=["no reason", "evicted", "pod", "another pod", "none"],
)
def test_wait_is_reported_in_the_words_of_kueue(stored: list[dict[str, Any]], words: str) -> None:
    assert Watched(*stored).words(pod("m-1", ADMISSION_GATE)) == words


def test_pods_without_the_gate_do_not_wait() -> None:
    assert Watched(workload()).words(pod("m-1"), pod("m-1", "example.com/other")) == ""


def test_further_waiting_pods_are_counted() -> None:
    watched = Watched(workload())

    assert watched.words(pod("m-2", ADMISSION_GATE), pod("m-1", ADMISSION_GATE)).startswith(
        "pod m-1 and 1 more wait for quota"
    )


def test_eviction_of_an_earlier_pod_is_reported() -> None:
    watched = Watched(workload(owner="m-0", QuotaReserved="yes", Evicted="Preempted"), workload())
    watched.watch.evicted(("n", "m"), ("n", "Pod", "m-0"))

    assert watched.words() == ""
    assert watched.words(pod("m-1", ADMISSION_GATE)).endswith("Kueue has evicted an earlier pod: Preempted")


def test_eviction_is_forgotten_when_no_pod_waits_for_a_while() -> None:
    watched = Watched(workload(owner="m-0", QuotaReserved="yes", Evicted="Preempted"), workload())
    watched.watch.evicted(("n", "m"), ("n", "Pod", "m-0"))

    watched.now = REPLACED + 1
    watched.words()

    assert "evicted" not in watched.words(pod("m-1", ADMISSION_GATE))


def test_owner_is_notified_when_its_workload_changes() -> None:
    watched = Watched()
    watched.watch.objects.put(workload(version=2))
    watched.watch.objects.put(workload(version=3, QuotaReserved="yes"))

    assert watched.reported == [("n", "Pod", "m-1")] * 2
