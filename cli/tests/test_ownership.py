"""Values of kubectl that the command line takes over, and those of administrators that it does not."""

from __future__ import annotations

import pytest

from kubefoundry_cli.cluster import MANAGER
from kubefoundry_cli.install.ownership import CONFLICT, UPDATES, transferred


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        ('1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas', True),
        ('1 conflict: conflict with "kubectl" using apps/v1: .spec.template', True),
        (
            '2 conflicts: conflicts with "kubectl" using apps/v1:\n- .a\nconflicts with "kubectl-client-side-apply" '
            "using apps/v1:\n- .b",
            True,
        ),
        ('1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas', False),
        ('1 conflict: conflict with "kubectl": .spec.replicas', False),
        ('1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas', False),
        (
            '2 conflicts: conflicts with "kubectl" using apps/v1:\n- .a\nconflicts with "admin" using apps/v1:\n- .b',
            False,
        ),
    ],
)
def test_conflict_with_a_manifest_of_kubectl_is_taken_over(message: str, taken: bool) -> None:
    managers = set(CONFLICT.findall(message))

    assert (bool(managers) and managers <= UPDATES) == taken


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
