"""Tests which claims several servers write to, and the report of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack import reasons, report, storage
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Snapshot

Make = Callable[..., Distribution]
Object = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"


def cr(**server: Any) -> Object:
    return {"metadata": {}, "spec": {"server": server}}


def mounted(claim: str, *, volume: Object | None = None, **mount: Any) -> Object:
    source = {"persistentVolumeClaim": {"claimName": claim, **(volume or {})}}
    return {"volumes": [{"name": "v", **source}], "volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


OWN = cr(storage={})


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"b": OWN}, {}),
        ({"b": cr(podOverrides=mounted("a-pvc"))}, {"a-pvc": "b"}),
        ({"b": cr(storage={}, podOverrides=mounted("a-pvc"))}, {"a-pvc": "b"}),
        ({"b": cr(podOverrides=mounted("c-pvc"))}, {}),
        ({"b": cr(podOverrides=mounted("a-pvc", readOnly=True))}, {}),
        ({"b": cr(podOverrides=mounted("a-pvc", volume={"readOnly": True}))}, {}),
        ({"b": cr(podOverrides={"volumes": mounted("a-pvc")["volumes"]})}, {}),
        ({"b": {"spec": {"server": {"podOverrides": {"volumes": [1, {"name": []}]}}}}}, {}),
        ({}, {}),
    ],
    ids=[
        *("own claims", "mounted", "mounted beside its own", "another claim", "read-only mount"),
        *("read-only volume", "not mounted", "corrupt", "alone"),
    ],
)
def test_claim_of_two_servers_is_found(others: dict[str, Object], expected: dict[str, str]) -> None:
    assert storage.shared_claims("a", {"a": OWN, **others}) == expected


def test_claim_in_overrides_of_both_is_found() -> None:
    both = {name: cr(podOverrides=mounted("team-data")) for name in ("a", "b")}

    assert storage.shared_claims("a", both) == {"team-data": "b"}
    assert storage.shared_claims("b", both) == {"team-data": "a"}


SHARED = {"conditions": [{"type": reasons.STORAGE_EXCLUSIVE, "reason": "ClaimShared"}]}
MOUNTS = cr(podOverrides=mounted("a-pvc"))


@pytest.mark.parametrize(
    ("live", "other", "is_wrong"),
    [
        (cr(podOverrides=mounted("a-pvc", readOnly=True)), {**OWN, "status": SHARED}, True),
        (cr(), {**OWN, "status": SHARED}, True),
        (None, {**OWN, "status": SHARED}, True),
        (MOUNTS, {**OWN, "status": SHARED}, False),
        (MOUNTS, OWN, True),
        (cr(), OWN, False),
        (None, OWN, False),
    ],
    ids=["read-only", "no volume", "deleted", "still shared", "mounted", "unrelated", "unrelated deleted"],
)
def test_other_cr_is_misreported_when_sharing_begins_or_ends(
    live: Object | None, other: Object, is_wrong: bool
) -> None:
    crs = {"a": other, **({"b": live} if live else {})}

    assert storage.misreported("b", live, crs) == (["a"] if is_wrong else [])


def test_cr_that_mounts_claim_of_new_cr_is_misreported() -> None:
    assert storage.misreported("a", OWN, {"a": OWN, "b": MOUNTS}) == ["b"]


@pytest.mark.parametrize(("observed", "is_unreported"), [((), True), ((1,), True), ((1, 2), False)])
def test_cr_is_unreported_until_its_spec_is_observed(observed: tuple[int, ...], is_unreported: bool) -> None:
    conditions = [{"type": str(number), "observedGeneration": number} for number in observed]
    live = {"metadata": {"generation": 2}, "status": {"conditions": conditions}}

    assert storage.is_unreported(live) is is_unreported


@pytest.mark.parametrize(
    ("spec", "server", "shared", "expected"),
    [
        ({}, {"storage": {}}, {}, ""),
        ({"replicas": 2}, {}, {}, ""),
        ({"replicas": 2}, {"storage": {}}, {}, "SeveralPods"),
        ({}, {"storage": {}, "autoscaling": {"maxReplicas": 2}}, {}, "SeveralPods"),
        ({"replicas": 2}, {"storage": {}, "autoscaling": {"maxReplicas": 1}}, {}, ""),
        ({}, {}, {"team-data": "other"}, "ClaimShared"),
        ({"replicas": 2}, {"storage": {}}, {"chat-pvc": "other"}, "ClaimShared"),
    ],
    ids=[
        "one pod",
        "no storage",
        "two pods",
        "autoscaled",
        "autoscaled to one",
        "shared",
        "shared by two pods",
    ],
)
def test_shared_storage_is_warned_about(
    make: Make, spec: Object, server: Object, shared: dict[str, str], expected: str
) -> None:
    before = report.status(Snapshot(make()), {}, NOW)

    status = report.status(Snapshot(make(spec, **server), shared=shared), before, NOW)

    found = [item for item in status["conditions"] if item["type"] == reasons.STORAGE_EXCLUSIVE]
    warnings = [reason for is_good, reason, _ in report.announcements(before, status) if not is_good]
    assert [item["reason"] for item in found] == ([expected] if expected else [])
    assert warnings == ([expected] if expected else [])
    assert all("Resolution: " in item["message"] for item in found)
