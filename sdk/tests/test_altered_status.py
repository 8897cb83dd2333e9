"""Statuses that admission changes: which parts, when an equal one is sent again, and how many others are sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.admitted import changed
from kubefoundry_sdk._runtime.altered_status import AGAIN, BURST, EVERY, AlteredStatuses, Sent
from kubefoundry_sdk._runtime.status import same

KEY = ("n", "m")
VALIDATED = {"type": "Validated", "status": "True", "reason": "ValidationPassed"}
READY = {"type": "Ready", "status": "False", "reason": "Progressing"}
SENT = {
    "phase": "Pending",
    "observedGeneration": 1,
    "provider": {"name": "p"},
    "conditions": [VALIDATED, READY],
}
OTHERS = {"type": "RulesValid", "status": "True", "reason": "Valid"}
LEAVES: dict[str, Any] = {"f:type": {}, "f:status": {}, "f:reason": {}}
OWNED = {
    "f:phase": {},
    "f:observedGeneration": {},
    "f:provider": {"f:name": {}},
    "f:conditions": {f'k:{{"type":"{type_}"}}': LEAVES for type_ in ("Validated", "Ready")},
}


def stored(status: dict[str, Any] | None, manager: str = "me") -> dict[str, Any]:
    """Return the API server's answer with this status. Admission does not change the owners of fields."""
    entry = {
        "manager": manager,
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": OWNED},
    }
    obj: dict[str, Any] = {"metadata": {"name": "m", "managedFields": [entry]}}
    return obj if status is None else {**obj, "status": status}


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        pytest.param(SENT, [], id="all"),
        pytest.param({**SENT, "provider": {"name": "p", "resourceName": "m"}}, [], id="fields of others"),
        pytest.param({**SENT, "conditions": [OTHERS, READY, VALIDATED]}, [], id="conditions of others"),
        pytest.param({**SENT, "phase": "Failed"}, ["status.phase"], id="other phase"),
        pytest.param({**SENT, "observedGeneration": 2}, ["status.observedGeneration"], id="other generation"),
        pytest.param({**SENT, "provider": {}}, ["status.provider"], id="part of a field"),
        pytest.param({**SENT, "conditions": [READY]}, ["condition Validated"], id="a condition less"),
        pytest.param(
            {**SENT, "conditions": [VALIDATED, {**READY, "status": "True"}]},
            ["condition Ready"],
            id="other condition",
        ),
        pytest.param(
            {name: SENT[name] for name in SENT if name != "conditions"},
            ["condition Validated", "condition Ready"],
            id="no conditions",
        ),
        pytest.param(
            None,
            [
                "status.phase",
                "status.observedGeneration",
                "status.provider",
                "condition Validated",
                "condition Ready",
            ],
            id="no status",
        ),
    ],
)
def test_altered_parts_of_a_status_are_named(status: dict[str, Any] | None, lost: list[str]) -> None:
    assert changed(stored(status), {"status": SENT}, "me", subresource="status") == lost


def test_missing_entry_of_the_manager_is_named() -> None:
    answer = stored(SENT, manager="other")

    assert changed(answer, {"status": SENT}, "me", subresource="status") == ["metadata.managedFields"]


def test_equal_status_is_repeated_after_growing_delays() -> None:
    statuses, now, delays = AlteredStatuses(), 0.0, []

    for _ in range(4):
        statuses.note(KEY, "digest", now, "changed")
        delays.append(statuses.left(KEY, now))
        assert statuses.pending(KEY, "digest", now) is not None
        now += delays[-1] or 0.0
        assert statuses.pending(KEY, "digest", now) is None

    assert delays == [AGAIN.first, AGAIN.last, AGAIN.last, AGAIN.last]


def test_other_status_is_sent_at_once_but_not_forever() -> None:
    statuses, sent = AlteredStatuses(), 0

    with pytest.raises(ApiError, match=f"one is sent every {EVERY:.0f} s") as error:
        for number in range(BURST + 1):
            assert statuses.pending(KEY, f"{number % 2}", float(number)) is None
            statuses.note(KEY, f"{number % 2}", float(number), "changed")
            sent += 1

    assert sent == BURST
    assert not error.value.rejected
    assert statuses.pending(KEY, "next", BURST + EVERY) is None


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda statuses: statuses.note(KEY, "digest", 1.0, ""), id="stored as sent"),
        pytest.param(lambda statuses: statuses.settle(KEY), id="as it should be"),
        pytest.param(lambda statuses: statuses.forget(KEY), id="gone"),
    ],
)
def test_nothing_is_left_after_the_end(end: Callable[[AlteredStatuses], None]) -> None:
    statuses = AlteredStatuses()
    statuses.note(KEY, "digest", 0.0, "changed")

    end(statuses)

    assert statuses.text(KEY) == ""
    assert statuses.left(KEY, 1.0) is None
    assert statuses.pending(KEY, "digest", 1.0) is None


def test_due_status_that_is_not_sent_is_forgotten() -> None:
    statuses = AlteredStatuses()
    statuses.note(KEY, "digest", 0.0, "changed")

    assert statuses.left(KEY, AGAIN.first) is None
    assert statuses.text(KEY) == ""


def noted(uid: str = "uid") -> AlteredStatuses:
    """Return the memory after admission has changed SENT."""
    statuses = AlteredStatuses()
    statuses.note(KEY, "digest", 0.0, "changed", Sent(uid, "me", SENT))
    return statuses


def seen(
    status: dict[str, Any] | None, manager: str = "me", fields: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the live object, in which the manager owns these fields instead of OWNED."""
    obj = stored(status, manager)
    obj["metadata"]["uid"] = "uid"
    if fields:
        obj["metadata"]["managedFields"][0]["fieldsV1"] = {"f:status": fields}
    return obj


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({**SENT, "phase": "Failed"}, id="other value"),
        pytest.param({**SENT, "provider": {}}, id="part of a field"),
        pytest.param({**SENT, "conditions": [READY]}, id="a condition less"),
        pytest.param({**SENT, "conditions": [VALIDATED, {**READY, "status": "True"}]}, id="other condition"),
        pytest.param({name: SENT[name] for name in SENT if name != "conditions"}, id="no conditions"),
        pytest.param(None, id="no status"),
    ],
)
def test_changed_status_is_read_as_it_was_sent(status: dict[str, Any] | None) -> None:
    read = noted().as_sent(KEY, seen(status))["status"]

    assert {
        **read,
        "conditions": sorted(read["conditions"], key=lambda item: item["type"], reverse=True),
    } == SENT


def test_status_without_our_entry_is_read_as_ours() -> None:
    read = noted().as_sent(KEY, seen(SENT, manager="other"))

    assert same(read, SENT, "me")


def test_value_of_another_manager_is_read_as_it_is() -> None:
    theirs = {**SENT, "phase": "Running", "conditions": [VALIDATED, OTHERS, {**READY, "status": "True"}]}
    kept = {"f:observedGeneration": {}, "f:conditions": {'k:{"type":"Validated"}': LEAVES}}

    assert noted().as_sent(KEY, seen(theirs, fields=kept))["status"] == theirs
    assert noted().as_sent(KEY, seen(theirs, manager="other"))["status"] == theirs


def test_other_object_of_the_name_is_read_as_it_is() -> None:
    live = seen({**SENT, "phase": "Failed"})

    assert noted(uid="earlier").as_sent(KEY, live) == live
