"""Tests that children which the existing operator's successor adopts are recognized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack import coexistence
from kubefoundry_llamastack.names import ADOPTED_FROM, CLAIMS, LLSD, SERVICES
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.kinds import Kind

Make = Callable[..., Distribution]
Object = dict[str, Any]

MARK = {ADOPTED_FROM: "chat"}


def server(namespace: str = "team", **annotations: str) -> Object:
    given = {f"ogx.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"name": "next", "namespace": namespace, "annotations": given}}


def child(**meta: Any) -> Object:
    """Return a child as a list has it: without its kind."""
    return {"metadata": {"name": "chat-service", "namespace": "team", **meta}}


def owned_by(api_version: str, kind: str) -> Object:
    owner = {"apiVersion": api_version, "kind": kind, "uid": "1", "controller": True}
    return child(ownerReferences=[owner])


@pytest.mark.parametrize(
    ("servers", "children", "cause"),
    [
        ([server(adopt_storage="chat")], {}, "OGXServer 'next' adopts"),
        ([server(adopt_networking="chat")], {}, "OGXServer 'next' adopts"),
        ([], {SERVICES: child(labels=MARK)}, "Service 'chat-service' was adopted"),
        ([], {SERVICES: child(annotations=MARK)}, "Service 'chat-service' was adopted"),
        ([], {CLAIMS: child(), SERVICES: owned_by("ogx.io/v1beta1", "OGXServer")}, "Service 'chat-service'"),
        ([], {SERVICES: owned_by("ogx.io/v1", "OGXServer")}, "Service 'chat-service' was adopted"),
        ([server(adopt_storage="other"), server("elsewhere", adopt_storage="chat"), server()], {}, None),
        ([], {CLAIMS: child(), SERVICES: owned_by(LLSD.api_version, LLSD.kind)}, None),
        ([], {SERVICES: owned_by("example.com/v1", "OGXServer")}, None),
    ],
    ids=[
        *("storage", "network", "label", "annotation", "owner", "newer version"),
        *("other server", "ours", "other group"),
    ],
)
def test_successor_is_found(
    make: Make, servers: list[Object], children: dict[Kind, Object], cause: str | None
) -> None:
    found = coexistence.find_successor(make(), servers, children)

    assert (found is None) is (cause is None)
    assert found is None or cause is None or found.message.startswith(cause)


def test_successor_is_deleted_before_claim_is_released(make: Make) -> None:
    """While it exists it adopts the children again, and its pods write to the volume."""
    found = coexistence.find_successor(make(), [server(adopt_storage="chat")], {})

    assert found is not None
    steps = ("delete the OGXServer", "wait until its pods are gone", f"remove the label {ADOPTED_FROM}")
    places = [found.message.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
