"""The real cert-manager issues the certificate of core's webhooks, as the chart requests it."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_core.webhook_configurations import CONFIGURATION, VALIDATING
from kubefoundry_local.control_plane import own_control_plane
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, SECRETS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from operators.rig import build, process
from support import pod_network
from support.admission import until_refused_by_webhook
from support.deployed_processes import run_processes
from support.deployments import CPU, model_deployment
from support.helm import CHART, CRD_CHART, Helm
from support.helm import build as build_helm
from support.namespaces import new_namespace
from support.waiting import SECONDS, until

SYSTEM: Final = "ml-platform"
AUTHORITY: Final = "platform-ca"
ISSUERS: Final = "cert-manager"
"""Namespace of the Secrets of ClusterIssuers."""

ADDRESS: Final = "198.19.255.2"
"""Of core's webhooks: an address of the pods' network, because the API server refuses endpoints on loopback."""

PORT: Final = 9443
SECRET: Final = "kubefoundry-core-certificate"
SETTINGS: Final = (
    "core.certificate.source=cert-manager,core.certificate.issuer.kind=ClusterIssuer,"
    f"core.certificate.issuer.name={AUTHORITY}"
)


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """A control plane with cert-manager and a ClusterIssuer. Skips outside the network namespace that `run` makes."""
    pod_network.require(ADDRESS, "tests/operators/run")
    program = build("cert-manager")
    with ExitStack() as stack:
        plane = stack.enter_context(own_control_plane(tmp_path / "plane", [f"--crds={program.parent}"]))
        made = Suite(plane, tmp_path / "suite")
        stack.callback(made.stop)
        command = [
            str(program),
            f"--kubeconfig={plane.kubeconfig}",
            f"--cluster-resource-namespace={ISSUERS}",
        ]
        stack.enter_context(process(command, os.environ, tmp_path / "cert-manager.log"))
        plane.kubectl("create", "namespace", ISSUERS)
        plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(authority()))
        yield made


@pytest.fixture
async def client(suite: Suite) -> AsyncIterator[Client]:
    administrator = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(administrator, user_agent="test") as opened:
        yield opened


async def test_cert_manager_issues_and_renews_the_webhook_certificate(
    suite: Suite, client: Client, tmp_path: Path
) -> None:
    helm = Helm(build_helm(), tmp_path, suite.plane.kubeconfig)
    place = ("--namespace", SYSTEM, "--create-namespace")
    helm("install", "crds", str(CRD_CHART), *place, "--take-ownership")
    helm("install", "models", str(CHART), *place, "--set", SETTINGS)
    suite.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(endpoints()))
    namespace = await new_namespace(client)

    deployment = await client.get(DEPLOYMENTS, "kubefoundry-core", SYSTEM)
    run_processes(suite, {"core": deployment}, SYSTEM, PORT, {})
    await until_refused_by_webhook(client, namespace)
    first = await client.get(SECRETS, SECRET, SYSTEM)
    served_first = ssl.get_server_certificate((ADDRESS, PORT))
    configuration = await client.get(VALIDATING, CONFIGURATION)
    await client.delete(SECRETS, SECRET, SYSTEM, uid=first["metadata"]["uid"])
    second = await until(client, SECRETS, SECRET, SYSTEM, lambda obj: is_renewed(obj, first))
    served_second = await served_after(served_first)
    await until_refused_by_webhook(client, namespace)
    await client.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")

    assert second is not None
    assert decoded(first, "tls.crt").startswith(served_first)
    assert decoded(second, "tls.crt").startswith(served_second)
    bundles = {webhook["clientConfig"]["caBundle"] for webhook in configuration["webhooks"]}
    assert bundles == {first["data"]["ca.crt"]} == {second["data"]["ca.crt"]}


def authority() -> list[dict[str, Any]]:
    """Return a certificate authority of the platform, and the ClusterIssuer that signs with it."""
    issuer = {"apiVersion": "cert-manager.io/v1"}
    meta = {"name": AUTHORITY, "namespace": ISSUERS}
    signed = {
        "isCA": True,
        "commonName": AUTHORITY,
        "secretName": AUTHORITY,
        "issuerRef": {"name": AUTHORITY, "kind": "Issuer"},
    }
    return [
        {**issuer, "kind": "Issuer", "metadata": meta, "spec": {"selfSigned": {}}},
        {**issuer, "kind": "Certificate", "metadata": meta, "spec": signed},
        {
            **issuer,
            "kind": "ClusterIssuer",
            "metadata": {"name": AUTHORITY},
            "spec": {"ca": {"secretName": AUTHORITY}},
        },
    ]


def endpoints() -> dict[str, Any]:
    """Return the address of the process as the one of a pod of core."""
    name = "kubefoundry-core"
    labels = {"kubernetes.io/service-name": name}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": "webhook", "port": PORT, "protocol": "TCP"}],
    }


def is_renewed(obj: Object | None, first: Object) -> bool:
    data = (obj or {}).get("data") or {}
    return bool(data.get("tls.crt")) and data["tls.crt"] != first["data"]["tls.crt"]


def decoded(secret: Object, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


async def served_after(first: str) -> str:
    """Wait until core serves another certificate than the first, and return it."""
    async with asyncio.timeout(SECONDS):
        while True:
            served = await asyncio.to_thread(ssl.get_server_certificate, (ADDRESS, PORT))
            if served != first:
                return served
            await asyncio.sleep(PROBE)
