"""A hub behind a company's authority: the flags of the provider lead a pod to it, and let the pod trust it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.llama import hub
from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import REPOSITORY, created, failed, running, tiny, words
from support.issued_certificates import Issued, issued
from support.restarts import restarted

pytestmark = pytest.mark.integration


@pytest.fixture
def authority() -> Issued:
    return issued("company")


@pytest.fixture
def own(suite: Suite, models: Hub, authority: Issued, tmp_path: Path) -> Iterator[Hub]:
    """Yield a hub with a certificate of the authority, and start the provider with flags that name both."""
    file, chain, key = (tmp_path / name for name in (models.file, "chain.pem", "key.pem"))
    file.write_bytes(models.content)
    leaf = issued("hub", authority, [addresses.NODE])
    chain.write_bytes(leaf.chain)
    key.write_bytes(leaf.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    with hub.serving(addresses.NODE, 0, REPOSITORY, file, context) as made:
        flags = {"KUBEFOUNDRY_POD_HF_ENDPOINT": made.url, "KUBEFOUNDRY_POD_CA_BUNDLE": "company-ca/ca.crt"}
        with restarted(suite.components["direct"], flags):
            yield made


async def create_bundle(api: Client, namespace: str, authority: Issued) -> None:
    certificate = authority.certificate.public_bytes(Encoding.PEM).decode()
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "company-ca", "namespace": namespace},
        "data": {"ca.crt": certificate},
    }
    await api.create(CONFIG_MAPS, config_map, manager="test")


async def test_pod_trusts_the_authority_of_the_flag(
    api: Client, namespace: str, own: Hub, authority: Issued
) -> None:
    await create_bundle(api, namespace, authority)
    await created(api, tiny(namespace, own, env=[]))

    await running(api, namespace)

    assert own.downloads == 1
    assert "data: {" in await words(api, namespace, max_tokens=1)


async def test_pod_trusts_no_other_authority(api: Client, namespace: str, own: Hub) -> None:
    await create_bundle(api, namespace, issued("other"))
    await created(api, tiny(namespace, own, env=[]))

    await failed(api, namespace, "failed")

    assert own.requests == 0
