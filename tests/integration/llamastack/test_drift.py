"""Tests that deleted or changed children are restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, SERVICES
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.repairs import LIMIT
from support.audit import AuditLog, until_logged
from support.llamastack import deployment, edit, llsd, until_object

pytestmark = pytest.mark.integration


def image(live: Object) -> str:
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_drift_of_child_is_corrected(api: Client, stack: Suite, namespace: str) -> None:
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


async def test_drift_of_config_map_is_corrected_for_any_cr_name(
    api: Client, stack: Suite, namespace: str
) -> None:
    """The name of this CR ends like the names of records."""
    meta = {"name": "cas", "namespace": namespace}
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca-bundle.crt": pem}}
    await api.create(CONFIG_MAPS, body, manager="user")
    bundle = {"caBundle": {"configMapName": "cas"}}
    await api.create(LLSD, llsd("odd-applied", namespace, tlsConfig=bundle), manager="user")
    first = await until_object(api, CONFIG_MAPS, "odd-applied-ca-bundle", namespace)

    await api.delete(CONFIG_MAPS, "odd-applied-ca-bundle", namespace, uid=first["metadata"]["uid"])

    await until_object(
        api,
        CONFIG_MAPS,
        "odd-applied-ca-bundle",
        namespace,
        lambda obj: obj["metadata"]["uid"] != first["metadata"]["uid"],
    )


async def test_forged_record_does_not_change_pods(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("forged", namespace), manager="user")
    before = await deployment(api, "forged", namespace)
    record = await until_object(api, CONFIG_MAPS, "forged-applied", namespace)

    def forge(obj: Object) -> None:
        text = obj["data"]["template"]
        obj["data"]["template"] = text.replace("example.com/stack:1", "example.com/forged:1")

    await edit(api, "forged-applied", namespace, forge, CONFIG_MAPS)

    back = await until_object(
        api,
        CONFIG_MAPS,
        "forged-applied",
        namespace,
        lambda obj: (
            obj["data"] == record["data"]
            and obj["metadata"]["resourceVersion"] != record["metadata"]["resourceVersion"]
        ),
    )
    # the next write of the operator comes after any that the forged record could have led to
    await edit(api, "forged", namespace, lambda cr: cr["spec"].update(replicas=2))
    live = await until_object(api, DEPLOYMENTS, "forged", namespace, lambda obj: obj["spec"]["replicas"] == 2)
    assert back["data"] == record["data"]
    assert live["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert image(live) == "example.com/stack:1"


async def test_child_without_labels_is_recognized(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("bare", namespace), manager="user")
    await until_object(api, SERVICES, "bare-service", namespace)
    await deployment(api, "bare", namespace)

    await edit(api, "bare-service", namespace, lambda obj: obj["metadata"].pop("labels"), SERVICES)

    live = await until_object(
        api, SERVICES, "bare-service", namespace, lambda obj: obj["metadata"].get("labels")
    )
    assert live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "llama-stack-operator"


async def test_drift_correction_backs_off(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("fight", namespace), manager="user")
    await deployment(api, "fight", namespace)
    log = AuditLog(stack)
    generation = 1

    for number in range(LIMIT):
        stack.plane.kubectl(
            "set", "image", "deployment/fight", f"*=example.com/other:{number}", "-n", namespace
        )
        generation += 2
        await until_object(api, DEPLOYMENTS, "fight", namespace, at_least(generation))
    stack.plane.kubectl("set", "image", "deployment/fight", "*=example.com/other:last", "-n", namespace)
    await edit(api, "fight", namespace, lambda cr: cr["spec"]["server"].update(workers=2))
    live = await until_object(api, DEPLOYMENTS, "fight", namespace, at_least(generation + 2))

    # The user's own change goes through at once.
    assert image(live) == "example.com/stack:1"
    done = await until_logged(lambda: applied(log, namespace), lambda found: len(found) > LIMIT)
    assert len(done) == LIMIT + 1


def applied(log: AuditLog, namespace: str) -> list[dict[str, Any]]:
    """Apply again after a conflict, because the controllers write, too."""
    return [
        entry
        for entry in log.requests("llamastack", namespace, "deployments")
        if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 200
    ]


def at_least(generation: int) -> Callable[[Object], bool]:
    return lambda obj: obj["metadata"]["generation"] >= generation
