"""Children that somebody deletes or changes by hand come back as they were."""

from __future__ import annotations

import pytest

from kubefoundry_demo.suite import Suite
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, SERVICES
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from support.llamastack import deployment, edit, llsd, until_object

pytestmark = pytest.mark.integration


def image(live: Object) -> str:
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_what_is_deleted_or_changed_by_hand_comes_back(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, llsd("drift", namespace), manager="user")
    first = await until_object(api, SERVICES, "drift-service", namespace)
    await deployment(api, "drift", namespace)

    await api.delete(SERVICES, "drift-service", namespace, uid=first["metadata"]["uid"])
    stack.plane.kubectl(
        "set", "image", "deployment/drift", "llama-stack=example.com/other:2", "-n", namespace
    )

    back = await until_object(
        api,
        SERVICES,
        "drift-service",
        namespace,
        lambda obj: obj["metadata"]["uid"] != first["metadata"]["uid"],
    )
    live = await until_object(
        api,
        DEPLOYMENTS,
        "drift",
        namespace,
        lambda obj: obj["metadata"]["generation"] == 3 and image(obj) == "example.com/stack:1",
    )
    assert back["spec"]["ports"][0]["port"] == 8321
    assert live["metadata"]["generation"] == 3


async def test_a_child_that_has_lost_its_labels_is_known_again(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, llsd("bare", namespace), manager="user")
    await until_object(api, SERVICES, "bare-service", namespace)
    await deployment(api, "bare", namespace)

    await edit(api, "bare-service", namespace, lambda obj: obj["metadata"].pop("labels"), SERVICES)

    live = await until_object(
        api, SERVICES, "bare-service", namespace, lambda obj: obj["metadata"].get("labels")
    )
    assert live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "llama-stack-operator"
