"""When a provider releases a model for the next provider, and its message until then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from kubefoundry_sdk._provider.reconcile.release import obstacle, should_report

OLD = "old-provider"
COMPATIBLE = ("ProviderCompatible", "True", "CompatibilityVerified", "fits", 2)
ACCEPTED = ("ResourceCreated", "False", "WaitingForCleanup", "waiting", 2)
CREATED = ("ResourceCreated", "True", "ResourceCreated", "created", 2)
REJECTED = ("ResourceCreated", "False", "ApplyRejected", "refused by a policy", 2)

KEYS = ("type", "status", "reason", "message", "observedGeneration")
Said = tuple[str, str, str, str, int]


def entry(manager: str, types: Iterable[str]) -> dict[str, Any]:
    """The entry of a manager that owns these conditions whole."""
    leaves: dict[str, Any] = {".": {}, **{f"f:{key}": {} for key in KEYS}}
    owned = {f"k:{json.dumps({'type': type_})}": leaves for type_ in types}
    return {
        "manager": manager,
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": owned}},
    }


def deployment(
    *reported: Said,
    ours: tuple[str, ...] = (),
    theirs: tuple[str, ...] | None = None,
    chosen: str | None = "new",
    dry_run: bool = False,
    **status: Any,
) -> dict[str, Any]:
    """ours, theirs: the conditions that we and the chosen provider own, by default all that are not ours."""
    if theirs is None:
        theirs = tuple(item[0] for item in reported if item[0] not in ours)
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "generation": 2,
            "annotations": {"kubefoundry.ai/dry-run": "true"} if dry_run else {},
            "managedFields": [entry(OLD, ours), entry("new-provider", theirs)],
        },
        "status": {
            "provider": {"name": chosen} if chosen else {},
            "conditions": [dict(zip(KEYS, item, strict=True)) for item in reported],
            **status,
        },
    }


@pytest.mark.parametrize(
    ("live", "why"),
    [
        pytest.param(deployment(COMPATIBLE, ACCEPTED), None, id="tried, and waits for us"),
        pytest.param(deployment(COMPATIBLE, CREATED), None, id="has created already"),
        pytest.param(deployment(), "Waiting for provider new to confirm", id="silent"),
        pytest.param(deployment(ACCEPTED), "Waiting for provider new to confirm", id="has looked at nothing"),
        pytest.param(deployment(COMPATIBLE), "Waiting for provider new to confirm", id="not tried yet"),
        pytest.param(
            deployment((*COMPATIBLE[:4], 1), ACCEPTED), "Waiting for provider new to confirm", id="old yes"
        ),
        pytest.param(
            deployment(COMPATIBLE, (*ACCEPTED[:4], 1)), "Waiting for provider new to confirm", id="old trial"
        ),
        pytest.param(
            deployment(COMPATIBLE, REJECTED),
            "Provider new cannot take over: refused by a policy",
            id="its objects are refused",
        ),
        pytest.param(
            deployment(("ProviderCompatible", "False", "Unsupported", "no such engine", 2)),
            "Provider new cannot take over: no such engine",
            id="it refuses",
        ),
        pytest.param(
            deployment(("ProviderHealthy", "False", "HeartbeatLost", "no heartbeat", 2)),
            "Waiting for provider new to confirm that it can take over: no heartbeat",
            id="it is lost",
        ),
        pytest.param(
            deployment(COMPATIBLE, CREATED, ours=("ProviderCompatible", "ResourceCreated")),
            "Waiting for provider new to confirm",
            id="these are our own words",
        ),
        pytest.param(
            deployment(COMPATIBLE, CREATED, ours=("ResourceCreated",)),
            "Waiting for provider new to confirm",
            id="one of these is our own word",
        ),
        pytest.param(
            deployment(COMPATIBLE, CREATED, theirs=()),
            "Waiting for provider new to confirm",
            id="nobody owns it: managedFields were reset",
        ),
        pytest.param(
            deployment(COMPATIBLE, CREATED, theirs=("ProviderCompatible",)),
            "Waiting for provider new to confirm",
            id="one of them is somebody else's",
        ),
        pytest.param(
            deployment(("ProviderCompatible", "False", "Unsupported", "no such engine", 2), theirs=()),
            "Waiting for provider new to confirm",
            id="somebody else's refusal",
        ),
        pytest.param(
            deployment(COMPATIBLE, ACCEPTED, dry_run=True),
            "Waiting to hand over to provider new: annotation kubefoundry.ai/dry-run is set",
            id="a question",
        ),
        pytest.param(
            deployment(COMPATIBLE, CREATED, chosen=None), "Waiting for a provider to be selected", id="nobody"
        ),
    ],
)
def test_release_waits_for_the_next_provider(live: dict[str, Any], why: str | None) -> None:
    reason = obstacle(live, OLD)

    assert reason == why or (reason is not None and why is not None and reason.startswith(why))


@pytest.mark.parametrize(
    ("reporter", "published", "expected"),
    [
        pytest.param(0, True, True, id="we"),
        pytest.param(1, True, False, id="the chosen one"),
        pytest.param(1, False, True, id="nothing is published"),
        pytest.param(None, True, True, id="nobody: managedFields were reset"),
    ],
)
def test_serving_provider_reports(reporter: int | None, published: bool, expected: bool) -> None:
    live = deployment()
    if reporter is not None:
        live["metadata"]["managedFields"][reporter]["fieldsV1"]["f:status"]["f:phase"] = {}
    live["status"]["provider"] |= {"resourceName": "m"} if published else {}

    assert should_report(live, OLD) is expected
