"""Helpers of several kinds: distinguished by kind and name, each changed for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.kinds import HELPER_KINDS
from kubefoundry_sdk._api.names import API_VERSION, MODEL_DEPLOYMENT, OWNER_UID_ANNOTATION
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import Helpers
from kubefoundry_sdk._runtime.store import Store
from support.plans import changed, deployment, planned, provider


def helper(kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}


def two_helpers(port: int = 8000) -> Provider:
    """Its ConfigMap and its Service have one name."""
    plain = provider()

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        service = helper("Service", f"{deployment.name}-config", spec={"ports": [{"port": port}]})
        rendered = plain.render(deployment, schema)
        return replace(rendered, helpers=(*rendered.helpers, service))

    return replace(plain, render=render, helper_kinds=("ConfigMap", "Service"))


def test_helpers_of_one_name_are_made_both() -> None:
    assert changed(planned(deployment(), subject=two_helpers())) == ["ConfigMap", "Service", "Engine"]


def test_unchanged_helpers_are_not_written() -> None:
    assert changed(planned(deployment(), planned(deployment(), subject=two_helpers()), two_helpers())) == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Service"])
def test_repair_writes_only_the_changed_helper(kind: str) -> None:
    live = planned(deployment(), subject=two_helpers())
    [edited] = [obj for obj in live.helpers if obj["kind"] == kind]
    if kind == "Service":
        edited["spec"]["ports"][0]["port"] = 1
    else:
        edited["data"]["served"] = "theirs"

    todo = planned(deployment(), live, two_helpers())

    assert changed(todo) == [kind]
    assert [obj["kind"] for obj, _ in todo.repairs] == [kind]


def test_edit_writes_only_the_helper_that_it_concerns() -> None:
    live = planned(deployment(), subject=two_helpers())

    assert changed(
        planned(deployment({"model": {"id": "org/m", "servedName": "x"}}), live, two_helpers())
    ) == ["ConfigMap"]


def test_each_kind_has_a_store_of_its_own() -> None:
    helpers = Helpers({"ConfigMap": Store(), "Service": Store()})
    service = helper("Service", "m")
    service["metadata"] |= {"namespace": "n", "resourceVersion": "1"}
    helpers.store(service).put(dict(service))

    assert helpers.live(service) is not None
    assert helpers.live({**service, "kind": "ConfigMap"}) is None
    assert helpers.live({**service, "kind": "PersistentVolumeClaim"}) is None
    assert [kind for kind, _ in helpers] == [HELPER_KINDS["ConfigMap"], HELPER_KINDS["Service"]]


@given(st.permutations(["n", "other", "z"]), st.sampled_from(["annotation", "ownerReference"]))
def test_object_of_another_namespace_is_not_a_helper(namespaces: list[str], claim: str) -> None:
    """Whoever knows a uid can write it on objects of their own namespace."""
    helpers = Helpers({"Service": Store(index=manifest.owner_uid)})
    for number, namespace in enumerate(namespaces):
        claimed = helper("Service", "m")
        claimed["metadata"] |= {"namespace": namespace, "resourceVersion": str(number + 1)}
        owner = {
            "apiVersion": API_VERSION,
            "kind": MODEL_DEPLOYMENT,
            "name": "m",
            "uid": "u",
            "controller": True,
        }
        claimed["metadata"] |= (
            {"annotations": {OWNER_UID_ANNOTATION: "u"}}
            if claim == "annotation"
            else {"ownerReferences": [owner]}
        )
        helpers.store(claimed).put(claimed)

    assert [obj["metadata"]["namespace"] for obj in helpers.of("n", "u")] == ["n"]


def test_listed_helper_has_api_version_and_kind() -> None:
    """Items of a list have no apiVersion and kind."""
    helpers = Helpers({"Service": Store(index=lambda obj: "u")})
    service = helper("Service", "m")
    listed = {"metadata": {"name": "m", "namespace": "n", "resourceVersion": "1"}}
    helpers.store(service).replace([listed], "1")

    assert [(obj["apiVersion"], obj["kind"]) for obj in helpers.of("n", "u")] == [("v1", "Service")]
    live = helpers.live({**service, "metadata": {"name": "m", "namespace": "n"}})
    assert live is not None and live["kind"] == "Service"
