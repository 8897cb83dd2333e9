"""Each write reaches the upstream object that it was decided for, and a forged record decides nothing."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import model_deployment
from support.proxy import Fault, behind
from support.suites import running_suite
from support.waiting import until, until_deployment
from support.widgets import SPEC, WIDGETS, install_faulty, reason_of

pytestmark = pytest.mark.integration

RECORD = "kubefoundry.ai/applied"
EVIL = {"name": "EVIL", "value": "yes"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with running_suite(tmp_path_factory.mktemp("fencing")) as made:
        install_faulty(made)
        made.start("core", "widgets")
        yield made


async def created(api: Client, namespace: str) -> Object:
    body = model_deployment("m", namespace, SPEC, provider="widgets")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: reason_of(obj) == "ResourceCreated")
    return await api.get(WIDGETS, "m", namespace)


async def edited(api: Client, namespace: str) -> None:
    edit = [{"op": "add", "path": "/spec/scaling/replicas", "value": 2}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")


async def test_object_changed_meanwhile_is_decided_again(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await created(api, namespace)
    log = AuditLog(suite)
    once: list[str] = []

    def in_between(request: web.Request) -> Fault | None:
        """Somebody is quicker by a hair: our request is on its way already."""
        if request.method == "PATCH" and request.path.endswith(f"/{namespace}/widgets/m") and not once:
            touch = ("annotate", "widget", "m", "-n", namespace, "example.com/touched=yes")
            once.append(suite.plane.kubectl(*touch).stdout)
        return None

    async with behind(suite, "widgets", tmp_path) as proxy:
        proxy.rule = in_between
        await edited(api, namespace)
        await until(api, WIDGETS, "m", namespace, lambda obj: obj and obj["spec"]["replicas"] == 2)

    codes = [
        entry["responseStatus"]["code"] for entry in log.requests("provider-widgets", namespace, "widgets")
    ]
    assert len(once) == 1
    assert 409 in codes


async def test_forged_record_is_never_written(suite: Suite, api: Client, namespace: str) -> None:
    widget = await created(api, namespace)
    parts: list[Any] = json.loads(
        zlib.decompress(base64.b64decode(widget["metadata"]["annotations"][RECORD]))
    )
    parts[0]["spec"] |= {"env": [EVIL], "flags": {**parts[0]["spec"].get("flags", {}), "evil": "yes"}}
    parts[3] = "example.com/evil:1"
    forged = base64.b64encode(zlib.compress(json.dumps(parts).encode())).decode()
    forge = [{"op": "replace", "path": "/metadata/annotations/kubefoundry.ai~1applied", "value": forged}]
    await api.json_patch(WIDGETS, "m", namespace, forge, manager="tenant")

    await edited(api, namespace)

    written = await until(api, WIDGETS, "m", namespace, lambda obj: obj and obj["spec"]["replicas"] == 2)
    assert written
    assert "evil" not in json.dumps(written["spec"]).lower()
    assert written["spec"]["image"] == SPEC["image"]
