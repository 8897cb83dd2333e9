"""Used, unused and missing permissions of a subject, by the audit log."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_conformance.cluster.permissions import UNSEEN, refused, unused


def request(verb: str, resource: str, *, code: int = 200, **reference: str) -> dict[str, Any]:
    decision = "forbid" if code == 403 else "allow"
    return {
        "verb": verb,
        "requestURI": f"/apis/example.com/v1/{resource}?watch=1",
        "objectRef": {"resource": resource, "apiGroup": "example.com", **reference},
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def rule(*verbs: str, resource: str = "widgets", **more: Any) -> dict[str, Any]:
    return {"apiGroups": ["example.com"], "resources": [resource], "verbs": list(verbs), **more}


@pytest.mark.parametrize(
    ("rules", "requests", "expected"),
    [
        ([rule("list", "delete")], [request("list", "widgets")], ["delete widgets.example.com"]),
        ([rule("*")], [request("list", "widgets")], ["* widgets.example.com"]),
        # an apply that creates an object needs both permissions
        ([rule("create", "patch")], [request("patch", "widgets", code=201)], []),
        ([rule("create", "patch")], [request("patch", "widgets")], ["create widgets.example.com"]),
        # a get reveals nothing that a list or patch does not return
        ([rule("get", "list")], [request("list", "widgets")], []),
        ([rule("get")], [], ["get widgets.example.com"]),
        # by name
        (
            [rule("patch", resourceNames=["a", "b"])],
            [request("patch", "widgets", name="a")],
            ["patch widgets.example.com b"],
        ),
        # a subresource is a right of its own
        (
            [rule("patch", resource="widgets/status")],
            [request("patch", "widgets")],
            ["patch widgets.example.com/status"],
        ),
        ([rule("patch", resource="widgets/status")], [request("patch", "widgets", subresource="status")], []),
        # a refused request uses no permission
        ([rule("list")], [request("list", "widgets", code=403)], ["list widgets.example.com"]),
        # a permission that the kit cannot exercise
        ([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}], [], []),
    ],
)
def test_unused_permissions_are_listed(
    rules: list[dict[str, Any]], requests: list[dict[str, Any]], expected: list[str]
) -> None:
    assert unused(rules, requests, UNSEEN) == expected


def test_only_requests_refused_by_rbac_lack_permission() -> None:
    quota = {
        **request("create", "widgets", code=403),
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }

    assert refused([quota, request("list", "widgets", code=403)]) == {
        ("list widgets.example.com", "/apis/example.com/v1/widgets")
    }
