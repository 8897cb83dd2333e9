"""Tests an API server whose answers change from one moment to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import deployment, llsd
from support.proxy import Fault, behind

pytestmark = pytest.mark.integration

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


async def test_certificates_are_kept_when_read_fails_once(
    api: Client, stack: Suite, namespace: str, tmp_path: Path
) -> None:
    meta = {"name": "cas", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca-bundle.crt": PEM}}
    await api.create(CONFIG_MAPS, body, manager="user")
    reads = []

    def away_once(request: web.Request) -> Fault | None:
        if request.path.endswith(f"/{namespace}/configmaps/cas"):
            reads.append(request.path)
        return Fault(404, "NotFound") if len(reads) == 1 and request.path == reads[0] else None

    async with behind(stack, "llamastack", tmp_path) as proxy:
        proxy.rule = away_once
        bundle = {"caBundle": {"configMapName": "cas"}}
        await api.create(LLSD, llsd("trusts", namespace, tlsConfig=bundle), manager="user")
        live = await deployment(api, "trusts", namespace)

    assert len(reads) == 2
    assert "ca-bundle" in {item["name"] for item in live["spec"]["template"]["spec"]["volumes"]}
