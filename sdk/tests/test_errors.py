"""The typed parts of the API server's answers. The Statuses were recorded on Kubernetes 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._cluster.errors import NO_DETAILS, ApiError, Cause, Details

CONFLICT = {
    "kind": "Status",
    "message": 'Apply failed with 1 conflict: conflict with "t": .spec.selectionRules',
    "reason": "Conflict",
    "details": {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "t"',
                "field": ".spec.selectionRules",
            }
        ]
    },
    "code": 409,
}
CHANGED = {
    "kind": "Status",
    "message": 'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply',
    "reason": "Conflict",
    "details": {"name": "a", "kind": "configmaps"},
    "code": 409,
}
TERMINATING = {
    "kind": "Status",
    "message": 'configmaps "d" is forbidden: unable to create new content in namespace seen because it is being '
    "terminated",
    "reason": "Forbidden",
    "details": {
        "name": "d",
        "kind": "configmaps",
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace seen is being terminated",
                "field": "metadata.namespace",
            }
        ],
    },
    "code": 403,
}


def test_conflicting_fields_are_those_of_the_causes() -> None:
    error = ApiError.from_status(409, CONFLICT)

    assert error.conflicting_fields == (".spec.selectionRules",)
    assert (error.code, error.reason, error.conflict) == (409, "Conflict", True)


@pytest.mark.parametrize("code", [403, 404, 409, 410])
def test_code_of_a_denial_says_nothing_about_the_object(code: int) -> None:
    causes = TERMINATING["details"]
    message = 'admission webhook "w.example.com" denied the request: teams.example.com "a" not found'

    error = ApiError.from_status(
        code, {"kind": "Status", "message": message, "code": code, "details": causes}
    )

    assert error.denied
    assert not (error.conflict or error.not_found or error.gone or error.in_deleted_namespace)


def test_answer_of_the_server_is_no_denial() -> None:
    assert not ApiError.from_status(409, CHANGED).denied


def test_changed_object_names_no_conflicting_field() -> None:
    error = ApiError.from_status(409, CHANGED)

    assert error.conflicting_fields == ()
    assert error.details == Details("configmaps", "a")


def test_terminating_namespace_is_recognized_by_its_cause() -> None:
    error = ApiError.from_status(403, TERMINATING)

    assert error.in_deleted_namespace
    assert error.details.causes[0] == Cause(
        "NamespaceTerminating", "namespace seen is being terminated", "metadata.namespace"
    )


def test_message_alone_tells_no_terminating_namespace() -> None:
    assert not ApiError.from_status(403, {**TERMINATING, "details": {}}).in_deleted_namespace


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        pytest.param(None, NO_DETAILS, id="null"),
        pytest.param([{"kind": "x"}], NO_DETAILS, id="list"),
        pytest.param({"kind": 5, "name": ["a"], "causes": {"reason": "x"}}, NO_DETAILS, id="wrong types"),
        pytest.param(
            {"kind": "pods", "causes": [None, "x", {"reason": 3, "field": "spec.x"}]},
            Details("pods", "", (Cause(field="spec.x"),)),
            id="readable parts",
        ),
    ],
)
def test_details_of_wrong_types_count_as_absent(details: Any, expected: Details) -> None:
    error = ApiError.from_status(403, {"kind": "Status", "reason": "Forbidden", "details": details})

    assert error.details == expected
    assert error.reason == "Forbidden"


def test_answer_that_is_no_status_has_no_details() -> None:
    assert ApiError.from_status(404, "404 page not found\n").details == NO_DETAILS
    assert ApiError.from_status(403, {"details": {"kind": "pods"}}).details == NO_DETAILS
