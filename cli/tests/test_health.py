"""The verdict on one model, and the commands that show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_cli.checks.models import verdicts
from kubefoundry_cli.commands.wait import _ready
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.health import PHRASES, STATES, STUCK, health_of
from kubefoundry_cli.model_table import rows
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.reasons import REASONS, STALE_STATUS

NEWEST = 3
PAUSED = {names.PAUSED_ANNOTATION: "true"}
Object = dict[str, Any]


IMPORTED = datetime.now(UTC)


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def current(value: Any) -> Any:
    """Return the object as if it had been made now. A run of all tests may import this module an hour before."""
    if isinstance(value, dict):
        return {key: current(child) for key, child in value.items()}
    if isinstance(value, list):
        return [current(child) for child in value]
    try:
        return (datetime.fromisoformat(value) + (datetime.now(UTC) - IMPORTED)).isoformat()
    except (TypeError, ValueError):
        return value


def condition(
    type_: str, reason: str, status: str = "False", generation: int = NEWEST, age: float = 5
) -> Object:
    return {
        "type": type_,
        "reason": reason,
        "status": status,
        "message": f"why {reason}",
        "observedGeneration": generation,
        "lastTransitionTime": ago(age),
    }


def model(*conditions: Object, age: float = 5, edited: float = 5, **metadata: Any) -> Object:
    meta = {
        "name": "m",
        "namespace": "models",
        "generation": NEWEST,
        "creationTimestamp": ago(age),
        "managedFields": [
            {"time": ago(edited), "fieldsV1": {"f:spec": {}}},
            {"time": ago(0), "fieldsV1": {}},
        ],
        **metadata,
    }
    return {"metadata": meta, "spec": {"provider": {"name": "acme"}}, "status": {"conditions": [*conditions]}}


NEW = condition("Ready", "DeploymentReady", "True")
OLD = condition("Ready", "DeploymentReady", "True", generation=2)
STARTS = condition("Ready", "Progressing")

CASES = [
    pytest.param(model(NEW), "Serving", True, False, "good", id="serves"),
    pytest.param(model(OLD), "Updating", False, False, "pending", id="rolls out"),
    pytest.param(model(OLD, edited=STUCK + 9), "Stuck", False, False, "wrong", id="rolls out too long"),
    pytest.param(model(STARTS), "Starting", False, False, "pending", id="starts"),
    pytest.param(
        model({**STARTS, "lastTransitionTime": ago(STUCK + 9)}, age=STUCK + 9, edited=STUCK + 9),
        *("Stuck", False, False, "wrong"),
        id="starts too long",
    ),
    pytest.param(
        model({**STARTS, "lastTransitionTime": ago(STUCK + 9)}, age=STUCK + 9),
        *("Starting", False, False, "pending"),
        id="starts again after an edit",
    ),
    pytest.param(model(), "Starting", False, False, "pending", id="created just now"),
    pytest.param(model(age=STUCK + 9, edited=STUCK + 9), "Stuck", False, False, "wrong", id="core is silent"),
    pytest.param(
        model(OLD, condition("ProviderCompatible", "Unsupported")),
        *("Refused", False, True, "wrong"),
        id="edit refused by the provider",
    ),
    pytest.param(
        model(OLD, condition("Validated", "ValidationFailed")),
        *("Refused", False, True, "wrong"),
        id="edit invalid",
    ),
    pytest.param(
        model(NEW, condition("ProviderCompatible", "Unsupported")),
        *("Refused", False, True, "wrong"),
        id="refused although Ready names it",
    ),
    pytest.param(
        model(OLD, condition("ProviderCompatible", "Unsupported", generation=2)),
        *("Updating", False, False, "pending"),
        id="refusal of an earlier edit",
    ),
    pytest.param(
        model(OLD, condition("ResourceCreated", "ApplyRejected")),
        *("NotApplied", False, True, "wrong"),
        id="edit rejected by the API server",
    ),
    pytest.param(
        model(OLD, condition("ResourceCreated", "ApplyFailed")),
        *("NotApplied", False, False, "wrong"),
        id="edit not written for now",
    ),
    pytest.param(
        model(STARTS, condition("ResourceCreated", "Recreating")),
        *("Starting", False, False, "pending"),
        id="recreated",
    ),
    pytest.param(model(OLD, annotations=PAUSED), "Paused", False, True, "wrong", id="edit paused"),
    pytest.param(model(NEW, annotations=PAUSED), "Paused", False, True, "wrong", id="paused and serving"),
    pytest.param(
        model(STARTS, condition("ProviderSelected", "ProviderNotRegistered")),
        *("WaitingForProvider", False, True, "wrong"),
        id="provider not registered",
    ),
    pytest.param(
        model(STARTS, condition("ProviderSelected", "NoHealthyProviders")),
        *("WaitingForProvider", False, False, "wrong"),
        id="provider down",
    ),
    pytest.param(
        model(OLD, condition("ProviderHealthy", "HeartbeatLost", generation=2)),
        *("WaitingForProvider", False, False, "wrong"),
        id="provider silent before an edit",
    ),
    pytest.param(
        model(NEW, condition("ProviderHealthy", "HeartbeatLost")),
        *("Serving", True, False, "wrong"),
        id="provider silent while serving",
    ),
    pytest.param(
        model(OLD, condition(STALE_STATUS, "NoUpstreamProgress", "True")),
        *("Stuck", False, False, "wrong"),
        id="upstream operator does nothing",
    ),
    pytest.param(model(condition("Ready", "Failed")), "Failed", False, True, "wrong", id="failed"),
    pytest.param(
        model(condition("Ready", "Failed", generation=2)),
        *("Starting", False, False, "pending"),
        id="failed before an edit",
    ),
    pytest.param(
        model(condition("Ready", "ScaledToZero")), "ScaledToZero", False, True, "good", id="scaled to zero"
    ),
    pytest.param(
        model(NEW, deletionTimestamp=ago(1), finalizers=["x"]),
        *("Deleting", False, True, "wrong"),
        id="being deleted",
    ),
]


@pytest.mark.parametrize(("obj", "state", "ready", "final", "severity"), CASES)
def test_health_of_a_model(obj: Object, state: str, ready: bool, final: bool, severity: str) -> None:
    health = health_of(current(obj))

    assert (health.state, health.ready, health.final, health.severity) == (state, ready, final, severity)


@pytest.mark.parametrize(("obj", "state", "ready", "final", "severity"), CASES)
def test_all_commands_show_the_same_verdict(
    obj: Object, state: str, ready: bool, final: bool, severity: str
) -> None:
    obj = current(obj)
    head, [row] = rows([obj], everywhere=False, wide=False)
    found = list(verdicts([obj], "models"))

    assert row[head.index("STATE")] == state
    assert found[0].state == severity
    if final:
        with pytest.raises(Failure, match=PHRASES[state]):  # type: ignore[index]
            _ready(obj, keep_waiting=False)
        assert not _ready(obj, keep_waiting=True)
    else:
        assert _ready(obj, keep_waiting=False) == ready


def test_cases_cover_all_states() -> None:
    assert {case.values[1] for case in CASES} == {*STATES}


def test_text_names_the_serving_edit_and_its_obstacle() -> None:
    health = health_of(model(OLD, condition("ProviderCompatible", "InvalidOverrides")))

    assert health.text == (
        "m serves generation 2, not yet 3, which is refused: why InvalidOverrides; correct spec.provider.overrides"
    )


def test_hint_names_the_provider_of_the_spec() -> None:
    health = health_of(model(STARTS, condition("ProviderSelected", "ProviderNotRegistered")))

    # a provider that does not come with the command line has a manifest
    assert health.remedy.endswith("kubefoundry provider install FILE")

    own = {**model(STARTS, condition("ProviderSelected", "ProviderNotRegistered"))}
    own["spec"] = {**own["spec"], "provider": {"name": "kaito"}}

    assert health_of(own).remedy.endswith("kubefoundry provider install kaito")


conditions = st.builds(
    condition,
    *(st.sampled_from([*REASONS]), st.sampled_from(sorted(set().union(*REASONS.values())))),
    *(st.sampled_from(["True", "False", "Unknown"]), st.integers(1, NEWEST), st.floats(0, 2 * STUCK)),
)


@given(st.lists(conditions, max_size=8), st.sampled_from([{}, PAUSED]), st.booleans())
def test_no_edit_is_well_before_it_serves(found: list[Object], annotations: Object, deleted: bool) -> None:
    obj = model(*found, annotations=annotations, deletionTimestamp=ago(1) if deleted else None)
    said = next((one for one in found if one["type"] == "Ready"), {"status": "False"})
    serves_newest = said["status"] == "True" and said["observedGeneration"] == NEWEST

    health = health_of(obj)

    assert not health.ready or (serves_newest and not deleted)
    assert health.ready or health.state != "Serving"
    assert health.severity != "good" or serves_newest or health.state == "ScaledToZero"
    assert not (health.ready and health.final)
    assert health.state == "Serving" or PHRASES[health.state] in health.text


hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("phase", "message", "endpoint", "provider"), hostile),
            "conditions": hostile
            | st.lists(
                st.fixed_dictionaries(
                    {"type": st.sampled_from([*REASONS])},
                    optional=dict.fromkeys(("status", "reason", "message", "observedGeneration"), hostile),
                ),
                max_size=3,
            ),
        },
    )
    | hostile
)
def test_status_of_any_shape_has_a_verdict(status: Any) -> None:
    health = health_of({**model(), "status": status})

    assert health.state in STATES and health.text.isprintable()
