"""When an upstream object's status describes the object as it was applied last."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.health.acknowledgement import Acknowledgement

MANAGER = "example-provider"
EARLY, LATE = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def upstream(
    generation: int, status: Any, *, applied: str | None = EARLY, written: str | None = None, uid: str = "u"
) -> dict[str, Any]:
    managed = []
    if applied:
        managed.append({"manager": MANAGER, "operation": "Apply", "time": applied})
    if written:
        managed.append(
            {"manager": "operator", "operation": "Update", "subresource": "status", "time": written}
        )
    meta = {"name": "m", "uid": uid, "generation": generation, "managedFields": managed}
    return {"metadata": meta, "status": status}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(upstream(2, {}), False, id="no status"),
        pytest.param(upstream(2, {"observedGeneration": 1}, written=LATE), False, id="generation behind"),
        pytest.param(upstream(2, {"observedGeneration": 2}), True, id="generation reached"),
        pytest.param(upstream(2, {"observedGeneration": 99}), False, id="generation that does not exist"),
        pytest.param(upstream(2, {"observedGeneration": None}, written=LATE), False, id="generation is null"),
        pytest.param(
            upstream(2, {"observedGeneration": "2"}, written=LATE), False, id="generation is a text"
        ),
        pytest.param(
            upstream(1, {"observedGeneration": True}, written=LATE), False, id="generation is a boolean"
        ),
        pytest.param(upstream(1, {"state": "x"}), True, id="never edited"),
        pytest.param(upstream(2, {"state": "x"}, applied=None), True, id="never applied by us"),
        pytest.param(upstream(2, {"state": "x"}, written=LATE), True, id="status written later"),
        pytest.param(
            upstream(2, {"state": "x"}, applied=LATE, written=EARLY), False, id="status written earlier"
        ),
        pytest.param(upstream(2, {"state": "x"}, written=EARLY), False, id="status of the same second"),
        pytest.param(upstream(2, {"state": "x"}), False, id="time of the status unknown"),
        pytest.param(
            upstream(2, {"conditions": [{"type": "Ready", "observedGeneration": 2}]}),
            True,
            id="condition new",
        ),
        pytest.param(
            upstream(2, {"conditions": [{"type": "Ready", "observedGeneration": 1}]}),
            False,
            id="condition old",
        ),
        pytest.param(
            upstream(2, {"conditions": [{"type": "Ready", "observedGeneration": 99}]}),
            False,
            id="condition of a generation that does not exist",
        ),
        pytest.param(upstream(2, {"conditions": [None, 3]}), False, id="conditions unreadable"),
    ],
)
def test_first_look_needs_proof(live: dict[str, Any], expected: bool) -> None:
    assert Acknowledgement().is_processed(live, MANAGER, names_generation=False) is expected


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(upstream(1, {"state": "x"}), False, id="never edited"),
        pytest.param(upstream(2, {"state": "x"}, written=LATE), False, id="status written later"),
        pytest.param(upstream(2, {"state": "x"}, applied=None), False, id="never applied by us"),
        pytest.param(upstream(2, {"observedGeneration": 2}), True, id="generation reached"),
        pytest.param(
            upstream(2, {"conditions": [{"type": "Ready", "observedGeneration": 2}]}),
            True,
            id="condition new",
        ),
        pytest.param(
            upstream(2, {"conditions": [{"type": "Ready", "observedGeneration": 1}]}, written=LATE),
            False,
            id="condition old",
        ),
    ],
)
def test_status_names_the_generation_when_the_crd_can(live: dict[str, Any], expected: bool) -> None:
    assert Acknowledgement().is_processed(live, MANAGER, names_generation=True) is expected


def test_changed_status_is_no_proof_when_the_crd_has_the_field() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.is_processed(upstream(1, {"state": "old"}), MANAGER, names_generation=True)

    changed = upstream(2, {"state": "new"}, written=LATE)

    assert not acknowledgement.is_processed(changed, MANAGER, names_generation=True)


def test_confirmed_object_stays_so_when_the_crd_gains_the_field() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.confirm(upstream(2, {"state": "x"}))

    assert acknowledgement.is_processed(upstream(2, {"state": "x"}), MANAGER, names_generation=True)


def test_changed_status_is_proof_after_an_edit() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.is_processed(upstream(1, {"state": "old"}), MANAGER, names_generation=False)

    assert not acknowledgement.is_processed(
        upstream(2, {"state": "old"}, written=EARLY), MANAGER, names_generation=False
    )
    assert acknowledgement.is_processed(
        upstream(2, {"state": "new"}, written=EARLY), MANAGER, names_generation=False
    )


def test_changed_status_is_no_proof_if_written_before_the_apply() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.is_processed(upstream(1, {"state": "old"}), MANAGER, names_generation=False)

    late = upstream(2, {"state": "new"}, applied=LATE, written=EARLY)

    assert not acknowledgement.is_processed(late, MANAGER, names_generation=False)


def test_metadata_edit_needs_no_new_status_once_confirmed() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.confirm(upstream(7, {"state": "x"}))

    assert acknowledgement.is_processed(
        upstream(7, {"state": "x"}, applied=LATE, written=EARLY), MANAGER, names_generation=False
    )


def test_status_of_another_object_is_no_proof() -> None:
    acknowledgement = Acknowledgement()
    acknowledgement.confirm(upstream(2, {"state": "x"}))

    assert not acknowledgement.is_processed(
        upstream(2, {"state": "y"}, uid="other"), MANAGER, names_generation=False
    )
