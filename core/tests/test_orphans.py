"""What is given up of providers that are gone, and when."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.orphans import (
    Abandoned,
    dead_managers,
    orphaned_finalizers,
    remaining,
)

CLEANUP = 300.0
ACME = "kubefoundry.ai/acme-provider"
ZETA = "kubefoundry.ai/zeta-provider"


def deleted(*finalizers: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "deletionTimestamp": "2026-03-01T00:00:00Z",
            "finalizers": list(finalizers),
        }
    }


@pytest.mark.parametrize(
    ("finalizers", "lost_in", "since", "expected"),
    [
        pytest.param([ACME], {}, 0, Abandoned((), CLEANUP), id="its time has only begun"),
        pytest.param([ACME], {}, CLEANUP - 1, Abandoned((), 1), id="absent, a second early"),
        pytest.param([ACME], {}, CLEANUP, Abandoned((ACME,), None), id="absent"),
        pytest.param([ACME], {"acme": 0.0}, CLEANUP, Abandoned((ACME,), None), id="silent"),
        pytest.param([ACME], {"acme": 160.0}, CLEANUP, Abandoned((), 160), id="alive: its own business"),
        pytest.param([ACME, ZETA], {"zeta": 160.0}, CLEANUP, Abandoned((ACME,), 160), id="one of two gone"),
        pytest.param(
            ["foregroundDeletion", "acme-provider", "kubefoundry.ai/other", "else.io/acme-provider"],
            {},
            CLEANUP * 9,
            Abandoned((), None),
            id="not a provider's finalizer",
        ),
        pytest.param([], {}, CLEANUP, Abandoned((), None), id="no finalizers"),
    ],
)
def test_finalizers(
    finalizers: list[str], lost_in: dict[str, float], since: float, expected: Abandoned
) -> None:
    assert orphaned_finalizers(deleted(*finalizers), lost_in, CLEANUP - since) == expected


ADDED = {
    "manager": "kubectl",
    "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"kubefoundry.ai/acme-provider"': {}}}},
}
"""The entry of managedFields of a user whose manifest has the finalizer."""


@pytest.mark.parametrize(
    ("managed", "lost_in", "removed"),
    [
        pytest.param([ADDED], {}, (ACME,), id="nobody of that name"),
        pytest.param([ADDED], {"acme": 160.0}, (), id="registered"),
        pytest.param([ADDED, {"manager": "acme-provider"}], {}, (), id="it wrote"),
        pytest.param([], {}, (), id="no managedFields"),
        pytest.param([{}], {}, (), id="reset"),
        pytest.param([ADDED | {"manager": "before-first-apply"}], {}, (), id="reset, and applied since"),
    ],
)
def test_finalizer_of_unknown_provider_is_not_waited_for(
    managed: list[dict[str, Any]], lost_in: dict[str, float], removed: tuple[str, ...]
) -> None:
    live = deleted(ACME)
    live["metadata"]["managedFields"] = managed

    assert orphaned_finalizers(live, lost_in, CLEANUP).names == removed


def test_finalizers_of_what_is_not_deleted_stay() -> None:
    live = deleted(ACME)
    del live["metadata"]["deletionTimestamp"]

    assert orphaned_finalizers(live, {}, -86400.0) == Abandoned((), None)


STATED: dict[str, Any] = {
    f'k:{{"type":"{type_}"}}': {
        f"f:{key}": {} for key in ("status", "reason", "message", "observedGeneration")
    }
    for type_ in ("ProviderCompatible", "ResourceCreated")
}


def published(
    current: str | None, *managers: str, accepts: bool = True, by: str | None = None
) -> dict[str, Any]:
    """accepts: whether the status has an acceptance. by: its owner if that is not the chosen provider."""
    owner = by or f"{current}-provider"
    created = {"type": "ResourceCreated", "status": "False", "reason": "WaitingForCleanup"}
    said = [{"type": "ProviderCompatible", "status": "True"}, created] if accepts else []
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "generation": 2,
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Apply",
                    "subresource": "status",
                    "fieldsV1": {"f:status": {"f:conditions": STATED if manager == owner else {}}},
                }
                for manager in managers
            ],
        },
        "status": {
            **({"provider": {"name": current}} if current else {}),
            "conditions": [{**item, "observedGeneration": 2} for item in said],
        },
    }


BOTH = ("acme-provider", "zeta-provider")


@pytest.mark.parametrize(
    ("current", "managers", "lost_in", "expected"),
    [
        pytest.param("zeta", BOTH, {}, Abandoned(("acme-provider",), None), id="absent"),
        pytest.param("zeta", BOTH, {"acme": 0.0}, Abandoned(("acme-provider",), None), id="silent"),
        pytest.param("zeta", BOTH, {"acme": 160.0}, Abandoned((), 160), id="still there"),
        pytest.param("zeta", BOTH[:1], {}, Abandoned((), None), id="its successor has not spoken"),
        pytest.param("acme", BOTH[:1], {}, Abandoned((), None), id="gone but chosen: may serve on"),
        pytest.param(None, BOTH[:1], {}, Abandoned((), None), id="nobody chosen"),
        pytest.param(
            "zeta",
            ["provider-selector", "kubefoundry-core", "zeta-provider"],
            {},
            Abandoned((), None),
            id="no provider's manager but the chosen one's",
        ),
    ],
)
def test_managers(
    current: str | None, managers: list[str], lost_in: dict[str, float], expected: Abandoned
) -> None:
    assert dead_managers(published(current, *managers), lost_in) == expected


def test_lost_providers_endpoint_stays_until_the_hand_over() -> None:
    assert dead_managers(published("zeta", *BOTH, accepts=False), {}) == Abandoned((), None)


def test_lost_provider_keeps_status_when_acceptance_is_not_owned() -> None:
    assert dead_managers(published("zeta", *BOTH, by="acme-provider"), {}) == Abandoned((), None)
    assert dead_managers(published("zeta", *BOTH, by="before-first-apply"), {}) == Abandoned((), None)


def test_manager_without_status_fields_is_no_orphan() -> None:
    live = published("zeta", *BOTH)
    del live["metadata"]["managedFields"][0]["subresource"]

    assert dead_managers(live, {}) == Abandoned((), None)


def test_leftover_object_is_named() -> None:
    live = deleted(ACME)

    assert remaining(live) == "none known"
    live["status"] = {"provider": {"name": "acme", "resourceKind": "Thing", "resourceName": "m"}}
    assert remaining(live) == "Thing n/m"
