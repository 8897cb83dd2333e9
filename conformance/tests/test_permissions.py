"""What the audit log says of a subject's rights."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_conformance.cluster.permissions import UNSEEN, refused, unused


def request(verb: str, resource: str, *, code: int = 200, **about: str) -> dict[str, Any]:
    decision = "forbid" if code == 403 else "allow"
    return {
        "verb": verb,
        "requestURI": f"/apis/example.com/v1/{resource}?watch=1",
        "objectRef": {"resource": resource, "apiGroup": "example.com", **about},
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def rule(*verbs: str, resource: str = "widgets", **more: Any) -> dict[str, Any]:
    return {"apiGroups": ["example.com"], "resources": [resource], "verbs": list(verbs), **more}


@pytest.mark.parametrize(
    ("rules", "requests", "found"),
    [
        ([rule("list", "delete")], [request("list", "widgets")], ["delete widgets.example.com"]),
        ([rule("*")], [request("list", "widgets")], ["* widgets.example.com"]),
        # an apply that makes an object is permitted by both
        ([rule("create", "patch")], [request("patch", "widgets", code=201)], []),
        ([rule("create", "patch")], [request("patch", "widgets")], ["create widgets.example.com"]),
        # what is listed, or answered by a patch, is shown by a get as well
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
        # what was refused was not used
        ([rule("list")], [request("list", "widgets", code=403)], ["list widgets.example.com"]),
        # what the kit cannot see
        ([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}], [], []),
    ],
)
def test_rights_that_no_request_needed(
    rules: list[dict[str, Any]], requests: list[dict[str, Any]], found: list[str]
) -> None:
    assert unused(rules, requests, UNSEEN) == found


def test_only_what_rbac_refuses_lacks_permission() -> None:
    quota = {
        **request("create", "widgets", code=403),
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }

    assert refused([quota, request("list", "widgets", code=403)]) == {
        ("list widgets.example.com", "/apis/example.com/v1/widgets")
    }
