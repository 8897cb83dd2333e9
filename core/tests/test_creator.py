"""The creator that the mutating webhook records, as manifests/creator-policy does (docs/policy.md)."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonpatch
import pytest

from kubefoundry_core.admission import modeldeployments

USER, GROUPS = "kubefoundry.ai/creator", "kubefoundry.ai/creator-groups"
SPEC = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}
ALICE = {USER: "alice", GROUPS: "team-a"}


def admitted(
    annotations: Any, before: Any = None, *, user_info: Any, deleting: bool = False, update: bool = False
) -> Any:
    """Return the annotations of the object after the webhook, or the missing field as "absent"."""
    meta: dict[str, Any] = {"name": "x", "namespace": "ns"}
    if deleting:
        meta["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    new = {
        "metadata": {**meta, **({} if annotations is None else {"annotations": annotations})},
        "spec": SPEC,
    }
    old = {"metadata": {**meta, "annotations": before}, "spec": SPEC}
    request = {
        "uid": "u-1",
        "kind": {"group": "kubefoundry.ai", "kind": "ModelDeployment"},
        "name": "x",
        "object": new,
        "oldObject": old if update else None,
        "userInfo": user_info,
    }
    response = modeldeployments.mutate({"request": request}, record_creator=True)["response"]
    assert response["allowed"]
    operations = json.loads(base64.b64decode(response.get("patch", base64.b64encode(b"[]"))))
    return jsonpatch.apply_patch(new, operations)["metadata"].get("annotations", "absent")


@pytest.mark.parametrize(
    ("annotations", "user_info", "recorded"),
    [
        (None, {"username": "alice", "groups": ["a", "b"]}, {USER: "alice", GROUPS: "a\nb"}),
        ({"x": "1"}, {"username": "alice"}, {"x": "1", USER: "alice", GROUPS: ""}),
        ({}, {"username": "alice", "groups": ["a\nadmins", "b"]}, {USER: "alice", GROUPS: "b"}),
        ({GROUPS: "admins"}, {"username": "alice", "groups": ["a"]}, {USER: "alice", GROUPS: "a"}),
        ({USER: "bob"}, {"username": "alice", "groups": ["a"]}, {USER: "bob"}),
        ({USER: ""}, {"username": "alice", "groups": ["a"]}, {USER: ""}),
        (None, {}, "absent"),
        (None, None, "absent"),
    ],
    ids=["new", "others", "line break", "groups only", "stated", "stated empty", "no user", "no info"],
)
def test_creator_is_recorded_on_create(annotations: Any, user_info: Any, recorded: Any) -> None:
    assert admitted(annotations, user_info=user_info) == recorded


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize(
    ("annotations", "before", "kept"),
    [
        (None, ALICE, ALICE),
        ({"x": "1"}, ALICE, {"x": "1", **ALICE}),
        ({GROUPS: "admins"}, ALICE, ALICE),
        ({GROUPS: "admins"}, {USER: "alice"}, {USER: "alice", GROUPS: ""}),
        ({"x": "1"}, {}, {"x": "1"}),
        ({USER: "bob"}, ALICE, {USER: "bob"}),
    ],
    ids=["replaced", "others", "groups changed", "no groups", "created before the flag", "changed"],
)
def test_creator_is_kept_on_update(annotations: Any, before: Any, kept: Any, deleting: bool) -> None:
    bob = {"username": "bob", "groups": ["b"]}

    assert admitted(annotations, before, user_info=bob, deleting=deleting, update=True) == kept


def test_creator_is_not_recorded_by_default() -> None:
    request = {"uid": "u", "kind": {"group": "kubefoundry.ai", "kind": "ModelDeployment"}, "name": "x"}
    body = {"metadata": {"name": "x"}, "spec": SPEC}
    review = {"request": {**request, "object": body, "userInfo": {"username": "alice"}}}

    response = modeldeployments.mutate(review)["response"]

    assert "creator" not in base64.b64decode(response.get("patch", "")).decode()
