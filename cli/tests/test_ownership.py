"""Values of kubectl that the command line takes over, and those of administrators that it does not."""

from __future__ import annotations

import pytest

from kubefoundry_cli.cluster import MANAGER
from kubefoundry_cli.install.ownership import is_of_kubectl, transferred
from kubefoundry_sdk._cluster.errors import ApiError, Cause, Details


def conflict(*causes: tuple[str, str]) -> ApiError:
    """Return a conflict with these fields and messages of its causes."""
    return ApiError(
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
        details=Details(
            causes=tuple(Cause("FieldManagerConflict", message, field) for field, message in causes)
        ),
    )


@pytest.mark.parametrize(
    ("messages", "taken"),
    [
        (['conflict with "kubectl-client-side-apply" using apps/v1'], True),
        (['conflict with "kubectl" using apps/v1'], True),
        (
            [
                'conflict with "kubectl" using apps/v1',
                'conflict with "kubectl-client-side-apply" using apps/v1',
            ],
            True,
        ),
        (['conflict with "kubectl" with subresource "scale" using apps/v1'], False),
        (['conflict with "kubectl"'], False),
        (['conflict with "kubectl-edit" using apps/v1'], False),
        (['conflict with "kubectl" using apps/v1', 'conflict with "admin" using apps/v1'], False),
        (['conflict with "kubectl" using apps/v1', "other words"], False),
        ([r'conflict with "a\" conflict with \"kubectl\" using v1" using v1'], False),
        ([], False),
    ],
)
def test_conflict_with_a_manifest_of_kubectl_is_taken_over(messages: list[str], taken: bool) -> None:
    error = conflict(*((f".spec.f{at}", message) for at, message in enumerate(messages)))

    assert is_of_kubectl(error) == taken


def test_denial_with_causes_of_a_conflict_is_not_taken_over() -> None:
    words = 'admission webhook "w" denied the request: no'
    cause = Cause("FieldManagerConflict", 'conflict with "kubectl" using apps/v1', ".spec.replicas")

    assert not is_of_kubectl(ApiError(409, "Conflict", words, details=Details(causes=(cause,))))


def test_transfer_merges_client_side_fields_into_ours() -> None:
    theirs = {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "apps/v1"}
    ours = {"manager": MANAGER, "operation": "Apply", "apiVersion": "apps/v1"}
    other = {"manager": "admin", "operation": "Update", "fieldsV1": {"f:x": {}}}
    managed = [
        {**theirs, "fieldsV1": {"f:spec": {"f:a": {}}}},
        {**ours, "fieldsV1": {"f:spec": {"f:b": {}}}},
        other,
    ]

    assert transferred({"metadata": {"managedFields": managed}}) == [
        other,
        {**ours, "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}}},
    ]
    assert transferred({"metadata": {"managedFields": [other]}}) is None
