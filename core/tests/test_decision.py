"""What core owns in a status, for every row of contract §3 that is core's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_core.decision import (
    ALTERED,
    EXPLICIT,
    NO_SELECTOR,
    REPORTED,
    WAITING,
    Surroundings,
    decide,
    shared,
)
from kubefoundry_sdk._api.conditions import find

GOOD: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}
BAD: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "vllm"}}
GPU_TEXT = "spec.resources.gpu.count: vLLM engine requires GPU (set resources.gpu.count > 0)"
REMEDY = "name one of these, or ask an administrator to install it; kubefoundry provider list shows all"
NOT_REGISTERED = f"Provider 'acme' is not registered (registered: beta, zeta): {REMEDY}"


def deployment(
    spec: Any, status: dict[str, Any] | None = None, *, named: str | None = None, deleting: bool = False
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "m", "namespace": "n", "generation": 3}
    if deleting:
        meta |= {"deletionTimestamp": "2026-03-01T00:00:00Z", "finalizers": ["kubefoundry.ai/acme-provider"]}
    body = {"metadata": meta, "spec": {**spec, "provider": {"name": named}} if named else spec}
    return body if status is None else {**body, "status": status}


def around(*registered: str, selector: bool = True) -> Surroundings:
    return Surroundings(dict.fromkeys(registered, ""), selector)


def condition(status: str, type_: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": "", **more}


def selected(reason: str, **provider: str) -> dict[str, Any]:
    held = condition("True", "ProviderSelected", reason, observedGeneration=2, lastTransitionTime="t")
    return {"provider": provider, "conditions": [held]}


def test_new_deployment_has_complete_status_at_once() -> None:
    decided = decide(deployment(GOOD), around("acme"))

    assert decided == {
        "phase": "Pending",
        "message": WAITING,
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Validated",
                "status": "True",
                "reason": "ValidationPassed",
                "message": "Schema validation passed",
                "observedGeneration": 3,
            },
            {
                "type": "Ready",
                "status": "False",
                "reason": "Progressing",
                "message": WAITING,
                "observedGeneration": 3,
            },
        ],
    }


@pytest.mark.parametrize(
    ("named", "registered", "message"),
    [
        pytest.param("acme", "acme", ALTERED, id="named"),
        pytest.param(None, "acme", ALTERED, id="to be selected"),
        pytest.param("acme", "beta", "Provider 'acme' is not registered", id="not registered"),
    ],
)
def test_altered_status_is_named_instead_of_a_provider(
    named: str | None, registered: str, message: str
) -> None:
    surroundings = replace(around(registered), altered=True)

    decided = decide(deployment(GOOD, named=named), surroundings)

    assert decided["message"].startswith(message)
    ready = find(decided["conditions"], "Ready")
    assert ready is not None and ready["message"] == decided["message"]


def test_paused_model_is_pending_when_created() -> None:
    paused = deployment(GOOD)
    paused["metadata"]["annotations"] = {"kubefoundry.ai/reconcile-paused": "true"}

    decided = decide(paused, around("acme"))

    assert (decided["phase"], decided["message"]) == ("Pending", "reconciliation paused")


@pytest.mark.parametrize(
    ("named", "status", "surroundings", "provider", "reason", "message"),
    [
        pytest.param(
            "acme",
            None,
            around("acme", selector=False),
            {"name": "acme", "selectedReason": EXPLICIT},
            "ExplicitlySelected",
            "Waiting for provider acme to report status",
            id="named and registered, no selector needed",
        ),
        pytest.param(
            "acme",
            None,
            around("zeta", "beta"),
            None,
            "ProviderNotRegistered",
            NOT_REGISTERED,
            id="named and not registered",
        ),
        pytest.param(
            "acme",
            selected("AutoSelected", name="beta", selectedReason="r"),
            around("beta", "zeta"),
            None,
            "ProviderNotRegistered",
            NOT_REGISTERED,
            id="named one is not registered, another one serves: not torn down",
        ),
        pytest.param(
            "acme",
            selected("ExplicitlySelected", name="acme", selectedReason=EXPLICIT),
            around(),
            {"name": "acme", "selectedReason": EXPLICIT},
            "ExplicitlySelected",
            "Waiting for provider acme to report status",
            id="registration went away after the choice",
        ),
        pytest.param(
            "acme",
            selected("AutoSelected", name="acme", selectedReason="r"),
            around("acme"),
            {"name": "acme", "selectedReason": EXPLICIT},
            "ExplicitlySelected",
            "Waiting for provider acme to report status",
            id="named after the selector chose the same: taken over",
        ),
        pytest.param(
            None,
            None,
            around("acme", selector=False),
            None,
            "NoSelector",
            NO_SELECTOR,
            id="no selector",
        ),
        pytest.param(
            None,
            selected("AutoSelected", name="acme", selectedReason="r"),
            around("acme", selector=False),
            None,
            None,
            WAITING,
            id="the selector's choice stays the selector's",
        ),
        pytest.param(
            None,
            selected("AutoSelected", name="acme", selectedReason="r"),
            around("other"),
            None,
            None,
            f"Provider 'acme' is not registered (registered: other): {REMEDY}",
            id="the selector's choice is not registered",
        ),
        pytest.param(
            None,
            selected("ExplicitlySelected", name="acme", selectedReason=EXPLICIT),
            around("acme"),
            {"name": "acme", "selectedReason": EXPLICIT},
            "ExplicitlySelected",
            "Waiting for provider acme to report status",
            id="name removed: kept until the selector takes over",
        ),
        pytest.param(
            None,
            selected("AutoSelected", name="acme", selectedReason="kept"),
            around("acme"),
            None,
            None,
            WAITING,
            id="name removed and taken over: released",
        ),
        pytest.param(
            None,
            selected("ExplicitlySelected", name="beta", selectedReason="cheapest"),
            around("acme", "beta"),
            None,
            None,
            WAITING,
            id="name removed and taken over by a selector without conditions: released",
        ),
        pytest.param(
            None,
            {"conditions": [condition("False", "ProviderSelected", "ProviderNotRegistered")]},
            around("acme"),
            None,
            None,
            WAITING,
            id="unregistered name removed",
        ),
    ],
)
def test_decision_on_chosen_provider(
    named: str | None,
    status: dict[str, Any] | None,
    surroundings: Surroundings,
    provider: dict[str, str] | None,
    reason: str | None,
    message: str,
) -> None:
    decided = decide(deployment(GOOD, status, named=named), surroundings)

    chosen = find(decided["conditions"], "ProviderSelected")
    assert decided.get("provider") == provider
    assert (chosen["reason"] if chosen else None) == reason
    assert decided["message"] == message
    if chosen:
        assert chosen["status"] == ("True" if provider else "False")
        assert "lastTransitionTime" not in chosen


def test_while_it_hands_over_core_says_nothing_new() -> None:
    status = selected("ExplicitlySelected", name="acme", selectedReason=EXPLICIT)

    held = find(decide(deployment(GOOD, status), around())["conditions"], "ProviderSelected")

    assert held and held["observedGeneration"] == 2


@pytest.mark.parametrize("named", [None, "acme"])
def test_invalid_spec_without_webhook_is_pending_with_problem(named: str | None) -> None:
    decided = decide(deployment(BAD, named=named), around("acme"))

    validated = find(decided["conditions"], "Validated")
    ready = find(decided["conditions"], "Ready")
    assert validated and (validated["status"], validated["reason"]) == ("False", "ValidationFailed")
    assert validated["message"] == GPU_TEXT
    assert (decided["phase"], decided["message"]) == ("Pending", GPU_TEXT)
    assert ready and (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        "Progressing",
        GPU_TEXT,
    )
    assert "provider" not in decided, "nothing is chosen for a spec that cannot be served"


def test_more_problems_than_are_listed_are_mentioned() -> None:
    many = deployment({**GOOD, "env": [{"name": "1"}] * 300})

    decided = decide(many, around("acme"))

    validated = find(decided["conditions"], "Validated")
    assert validated is not None
    assert validated["message"].endswith("; spec: there are more problems: only the first 20 are listed")


def test_invalid_edit_keeps_the_serving_provider() -> None:
    status = selected("AutoSelected", name="beta", selectedReason="r")

    assert "provider" not in decide(deployment(BAD, status, named="acme"), around("acme", "beta"))
    kept = decide(deployment(BAD, status, named="beta"), around("beta"))
    assert kept["provider"] == {"name": "beta", "selectedReason": EXPLICIT}


@pytest.mark.parametrize(
    "spec", [{}, [], "x", {"provider": "x"}, {"provider": {"name": 5}}, {"provider": None}]
)
def test_malformed_spec_is_reported_as_invalid(spec: Any) -> None:
    decided = decide({**deployment({}), "spec": spec}, around(selector=False))

    validated = find(decided["conditions"], "Validated")
    assert validated and validated["status"] == "False" and validated["message"]


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("spec", [GOOD, BAD])
def test_phase_and_ready_are_the_providers_once_it_reported(spec: dict[str, Any], deleting: bool) -> None:
    status = {
        "phase": "Running",
        "conditions": [condition("True", "ProviderCompatible", "CompatibilityVerified")],
    }

    decided = decide(deployment(spec, status, deleting=deleting), around("acme"))

    assert {"phase", "message", "observedGeneration"}.isdisjoint(decided)
    assert [item["type"] for item in decided["conditions"]] == ["Validated"]


@pytest.mark.parametrize(
    ("owner", "cores"),
    [
        (None, False),
        ("before-first-apply", False),
        ("acme-provider", False),
        ("kubectl-edit", True),
        ("kubefoundry-selector", True),
    ],
)
@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_acceptance_counts_only_from_its_provider(operation: str, owner: str | None, cores: bool) -> None:
    status = {"conditions": [condition("True", "ProviderCompatible", "CompatibilityVerified")]}
    live = deployment(GOOD, status)
    fields: dict[str, Any] = {
        "f:status": {"f:conditions": {'k:{"type":"ProviderCompatible"}': {"f:status": {}}}}
    }
    entry = {"manager": owner, "operation": operation, "subresource": "status", "fieldsV1": fields}
    live["metadata"]["managedFields"] = [entry] if owner else []

    decided = decide(live, around("acme"))

    assert (decided.get("phase") == "Pending") is cores


def test_deleted_model_is_terminating_before_any_report() -> None:
    decided = decide(deployment(GOOD, deleting=True), around("acme"))

    assert decided["phase"] == "Terminating"
    assert decided["message"] == "Waiting for finalizers: kubefoundry.ai/acme-provider"


def test_deletion_is_terminating_when_the_provider_is_silent() -> None:
    running = {
        "phase": "Running",
        "conditions": [condition("True", "ProviderCompatible", "CompatibilityVerified")],
    }

    decided = decide(deployment(GOOD, running, deleting=True), replace(around("acme"), unreported=True))

    ready = find(decided["conditions"], "Ready") or {}
    assert (decided["phase"], ready["status"], ready["reason"]) == ("Terminating", "False", "Progressing")
    assert decided["message"] == ready["message"] == "Waiting for finalizers: kubefoundry.ai/acme-provider"


@pytest.mark.parametrize("unreported", [False, True])
@pytest.mark.parametrize(("owned", "kept"), [(("phase", "message"), True), (("phase",), False), ((), False)])
def test_core_reports_a_deletion_until_the_provider_does(
    owned: tuple[str, ...], kept: bool, unreported: bool
) -> None:
    status = {
        "phase": "Terminating",
        "conditions": [condition("True", "ProviderCompatible", "CompatibilityVerified")],
    }
    live = deployment(GOOD, status, deleting=True)
    fields: dict[str, Any] = {"f:status": {f"f:{name}": {} for name in owned}}
    live["metadata"]["managedFields"] = [
        {"manager": "kubefoundry-core", "operation": "Apply", "subresource": "status", "fieldsV1": fields}
    ]

    decided = decide(live, replace(around("acme"), unreported=unreported))

    assert ("phase" in decided) is kept


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param("acme", REPORTED, id="the chosen provider has written"),
        pytest.param("beta", frozenset(), id="only another one has"),
        pytest.param(None, frozenset(), id="none is chosen"),
    ],
)
def test_core_shares_fields_only_with_the_chosen_provider(
    chosen: str | None, expected: frozenset[str]
) -> None:
    live = written_by("acme", chosen)
    live["metadata"]["managedFields"].append(owned_by_core(*REPORTED, "Validated"))

    assert shared(live) == expected


def test_core_shares_nothing_once_it_has_released_its_part() -> None:
    live = written_by("acme", "acme")
    live["metadata"]["managedFields"].append(owned_by_core("Validated"))

    assert shared(live) == frozenset()


def owned_by_core(*fields: str) -> dict[str, Any]:
    """The entry of managedFields for these status fields and conditions."""
    owned: dict[str, Any] = {f"f:{name}": {} for name in fields if name[0].islower()}
    conditions: dict[str, Any] = {f'k:{{"type":"{name}"}}': {".": {}} for name in fields if name[0].isupper()}
    return {
        "manager": "kubefoundry-core",
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {**owned, "f:conditions": conditions}},
    }


@pytest.mark.parametrize("chosen", ["acme", "beta"])
def test_core_leaves_status_to_provider_until_it_let_go(chosen: str) -> None:
    decided = decide(written_by("acme", chosen), around("acme", "beta"))

    assert "phase" not in decided
    assert find(decided["conditions"], "Ready") is None


def written_by(provider: str, chosen: str | None) -> dict[str, Any]:
    """A deployment in whose status the provider has written, but not whether it is compatible."""
    body = deployment(GOOD, {"provider": {"name": chosen}} if chosen else {})
    entry = {"manager": f"{provider}-provider", "operation": "Apply", "subresource": "status", "fieldsV1": {}}
    body["metadata"]["managedFields"] = [entry]
    return body


HELD = {"name": "beta", "selectedReason": EXPLICIT}


@pytest.mark.parametrize("named", ["acme", None])
@pytest.mark.parametrize("valid", [True, False])
def test_provider_set_by_core_is_kept_without_a_successor(named: str | None, valid: bool) -> None:
    """Whoever serves would not look after it any more."""
    for reason in ("ExplicitlySelected", "ProviderNotRegistered"):
        live = {"provider": HELD, "conditions": [condition("True", "ProviderSelected", reason)]}
        for surroundings in (around("beta"), around("beta", selector=False), around()):
            decided = decide(deployment(GOOD if valid else BAD, live, named=named), surroundings)

            assert decided["provider"] == HELD


def shared_with_the_selector(live: dict[str, Any], *fields: str) -> dict[str, Any]:
    """The deployment as it is when the selector holds these fields of the condition."""
    held: dict[str, Any] = {f"f:{name}": {} for name in ("type", *fields)}
    conditions = {'k:{"type":"ProviderSelected"}': {".": {}, **held}}
    made = deployment(GOOD, live)
    made["metadata"]["managedFields"] = [
        {
            "manager": "provider-selector",
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": {"f:status": {"f:conditions": conditions}},
        }
    ]
    return made


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ((), True),
        (("status",), True),
        (("status", "message"), True),
        (("status", "reason", "message", "lastTransitionTime"), False),
    ],
)
def test_condition_shared_with_the_selector_is_kept(fields: list[str], kept: bool) -> None:
    live = {"conditions": [condition("False", "ProviderSelected", "ProviderNotRegistered")]}

    decided = decide(shared_with_the_selector(live, *fields), around("acme"))

    held = find(decided["conditions"], "ProviderSelected")
    assert (held is not None) is kept


@pytest.mark.parametrize("reason", ["NoMatchingProvider", "NoHealthyProviders"])
@pytest.mark.parametrize(("generation", "reported"), [(1, True), (0, False)])
def test_that_no_provider_fits_is_in_the_message(reason: str, generation: int, reported: bool) -> None:
    said = {**condition("False", "ProviderSelected", reason), "message": "none fits"}
    body = deployment(GOOD, {"conditions": [{**said, "observedGeneration": generation}]})
    body["metadata"]["generation"] = 1

    decided = decide(body, around("acme"))

    ready = find(decided["conditions"], "Ready") or {}
    assert (decided["message"] == "none fits", ready["message"] == "none fits") == (reported, reported)


NEWER = {**GOOD, "engine": {"type": "llamacpp", "extraArgs": ["--lora", "a"]}}


@pytest.mark.parametrize(
    ("spec", "named", "selected_at", "versions", "is_valid"),
    [
        pytest.param(NEWER, "acme", None, {"acme": "0.2"}, False, id="named"),
        pytest.param(NEWER, "acme", None, {"acme": "0.3"}, True, id="named, newer"),
        pytest.param(NEWER, "acme", None, {"acme": ""}, False, id="it states none"),
        pytest.param(NEWER, "acme", None, {}, True, id="not registered"),
        pytest.param(GOOD, "acme", None, {"acme": "0.2"}, True, id="no newer field"),
        pytest.param(
            NEWER, None, 3, {"acme": "0.2"}, False, id="selected, and replaced by an earlier version"
        ),
        pytest.param(NEWER, None, 2, {"acme": "0.2"}, False, id="the selector decides next"),
        pytest.param(NEWER, None, None, {"acme": "0.2"}, True, id="not selected"),
    ],
)
def test_field_that_provider_would_ignore_is_invalid(
    spec: dict[str, Any],
    named: str | None,
    selected_at: int | None,
    versions: dict[str, str],
    is_valid: bool,
) -> None:
    status = selected("RuleMatched", name="acme") if selected_at else None
    if status:
        status["conditions"][0]["observedGeneration"] = selected_at

    decided = decide(deployment(spec, status, named=named), Surroundings(versions, True))

    validated = find(decided["conditions"], "Validated") or {}
    assert validated["status"] == str(is_valid)
    assert (validated["reason"] == "ProviderTooOld") is not is_valid
    assert is_valid or validated["message"].endswith(
        "would ignore engine.extraArgs: ask an administrator to upgrade the provider, or remove the field"
    )
