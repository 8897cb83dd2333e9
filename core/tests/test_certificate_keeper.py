"""The order of a turn of the certificates, mostly with a Secret that others maintain."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubefoundry_core.admission.listener import Listener
from kubefoundry_core.certificate_keeper import CertificateKeeper
from kubefoundry_core.certificate_secret import SECRET
from kubefoundry_core.conversion import SERVICE as CONVERSION
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk._cluster.logs import VALUES
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.listening import bind
from kubefoundry_sdk._runtime.process import Process
from support.issued_certificates import Issued, issued, secret_data
from support.wire import Asked, ok, refusal, wire

HOST: Final = f"kubefoundry-core.{SYSTEM_NAMESPACE}.svc"
NAME: Final = "platform-tls"
SERVICE: Final = {"service": {"name": "kubefoundry-core", "namespace": SYSTEM_NAMESPACE}}


def logged_values(record: logging.LogRecord) -> dict[str, str]:
    values: dict[str, str] = vars(record).get(VALUES, {})
    return values


def answer(asked: Asked) -> web.Response:
    """Store each apply, as the only webhook's next state."""
    if asked.path == "/version":
        return ok({"major": "1", "minor": "34"})
    if asked.method == "PUT":
        return ok(asked.body)
    if asked.method != "PATCH":
        return refusal(404, "NotFound")
    meta = asked.body["metadata"]
    return ok({**asked.body, "metadata": {**meta, "resourceVersion": str(int(meta["resourceVersion"]) + 1)}})


class Turns:
    """The turns of a leader. `bundles` has each caBundle that it applied to the validating webhook."""

    def __init__(
        self, process: Process, asked: list[Asked], listener: Listener, hosts: list[str], existing: str
    ) -> None:
        self.listener = listener
        self.process = process
        self._asked = asked
        self._keeper = CertificateKeeper(process, listener, hosts, existing)
        self._name = existing or SECRET
        self._versions = iter(range(1, 10))

    @property
    def bundles(self) -> list[bytes]:
        return [
            base64.b64decode(asked.body["webhooks"][0]["clientConfig"]["caBundle"])
            for asked in self._asked
            if asked.method == "PATCH" and "validating" in asked.path
        ]

    def convert(self, root: Issued, version: str = "1", service: str = "kubefoundry-core") -> None:
        """Let a CRD ask core for conversions, by this Service, and trust this authority."""
        called = {"service": {"name": service, "namespace": SYSTEM_NAMESPACE}}
        client = {**called, "caBundle": base64.b64encode(root.chain).decode()}
        self._keeper._crds[MODEL_DEPLOYMENTS.crd].put(
            {
                "metadata": {"name": MODEL_DEPLOYMENTS.crd, "resourceVersion": version},
                "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}},
            }
        )

    @property
    def crd_bundles(self) -> list[bytes]:
        """Return each caBundle that was applied to a CRD."""
        return [
            base64.b64decode(asked.body["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"])
            for asked in self._asked
            if asked.method == "PATCH" and "customresourcedefinitions" in asked.path
        ]

    async def take(self, root: Issued, leaf: Issued, client: dict[str, Any] = SERVICE) -> str | None:
        """Run a turn with this Secret and `clientConfig`, and return why core is not ready."""
        secrets, *configurations = self.process.stores
        version = str(next(self._versions))
        meta = {"name": self._name, "namespace": self.process.namespace, "resourceVersion": version}
        key = base64.b64encode(root.key_pem).decode()
        secrets.put({"metadata": meta, "data": {**secret_data(root, leaf), "ca.key": key}})
        for store in configurations:
            meta = {"name": "kubefoundry-core", "resourceVersion": "1"}
            store.put({"metadata": meta, "webhooks": [{"name": "a.kubefoundry.ai", "clientConfig": client}]})
        await self._keeper._turn(("", "certificates"))
        return self._keeper._ready()


@asynccontextmanager
async def turns(*hosts: str, existing: str = NAME) -> AsyncIterator[Turns]:
    async with wire(answer) as api:
        flags = options.parser("kubefoundry-core", "").parse_args([f"--namespace={SYSTEM_NAMESPACE}"])
        process = Process("kubefoundry-core", flags, api.client)
        process.leading.set()
        bound = bind(0)
        listener = Listener(web.Application(), bound)
        try:
            yield Turns(process, api.asked, listener, list(hosts), existing)
        finally:
            await listener._runner.cleanup()
            bound.close()


@pytest.mark.parametrize(
    ("bits", "usage", "reason"),
    [
        (1024, ExtendedKeyUsageOID.SERVER_AUTH, "OpenSSL refuses tls.crt (EE_KEY_TOO_SMALL); issue it"),
        (2048, ExtendedKeyUsageOID.CLIENT_AUTH, "tls.crt is not for servers; issue it"),
    ],
)
async def test_refused_certificate_is_reported_before_it_is_published(
    caplog: pytest.LogCaptureFixture, bits: int, usage: Any, reason: str
) -> None:
    root = issued("root")
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    refused = issued("leaf", root, [HOST], key=key, usages=[usage])
    problem = f"Secret {SYSTEM_NAMESPACE}/{NAME} is unusable: {reason}"
    async with turns() as core:
        first = await core.take(root, refused)

    assert first and first.startswith(problem)
    assert not core.bundles
    levels = [
        record.levelno for record in caplog.records if problem in logged_values(record).get("problem", "")
    ]
    assert levels == [logging.ERROR]


async def test_own_certificate_that_openssl_refuses_is_replaced() -> None:
    root = issued("root")
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    async with turns(existing="") as core:
        problem = await core.take(root, issued("leaf", root, [HOST], key=weak))

        assert problem is None
        assert core.listener.presented is not None
        assert core.bundles == [core.listener.presented.bundle]


async def test_good_certificate_is_served_when_the_next_is_refused() -> None:
    root, other = issued("root"), issued("root")
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    async with turns() as core:
        before = await core.take(root, issued("leaf", root, [HOST]))
        presented = core.listener.presented

        after = await core.take(other, issued("leaf", other, [HOST], key=weak))

    assert (before, after) == (None, None)
    assert core.listener.presented == presented
    assert core.bundles == [root.chain]


async def test_new_leaf_waits_when_conversion_trusts_the_old_leaf() -> None:
    root, other = issued("root"), issued("root")
    async with turns() as core:
        await core.take(root, issued("leaf", root, [HOST]))
        core.convert(root)
        before = core.listener.presented

        await core.take(other, issued("leaf", other, [HOST]))
        waiting = core.listener.presented
        core.convert(other, "3")
        await core.take(other, issued("leaf", other, [HOST]))

    assert waiting == before != core.listener.presented
    assert core.crd_bundles == [other.chain]


async def test_conversion_without_a_bundle_does_not_delay_admission() -> None:
    root = issued("root")
    async with turns() as core:
        core.convert(issued("root"))

        problem = await core.take(root, issued("leaf", root, [HOST]))

    assert problem is None
    assert core.listener.presented is not None
    assert core.crd_bundles == [root.chain]


async def test_leaf_without_conversion_name_serves_admission(caplog: pytest.LogCaptureFixture) -> None:
    root = issued("root")
    async with turns() as core:
        core.convert(root, service=CONVERSION)

        problem = await core.take(root, issued("leaf", root, [HOST]))

        assert problem is None
        assert core.listener.presented is not None
        assert core.bundles == [root.chain]
    (failing,) = [record for record in caplog.records if record.msg.startswith("conversions fail")]
    assert logged_values(failing)["secret"] == f"{SYSTEM_NAMESPACE}/{NAME}"
    assert logged_values(failing)["host"].startswith(f"{CONVERSION}.")


async def test_leaf_with_conversion_name_stays_when_next_lacks_it() -> None:
    root = issued("root")
    async with turns() as core:
        core.convert(root, service=CONVERSION)
        await core.take(root, issued("leaf", root, [HOST, f"{CONVERSION}.{SYSTEM_NAMESPACE}.svc"]))
        before = core.listener.presented

        problem = await core.take(root, issued("leaf", root, [HOST]))

        assert problem is None
        assert core.listener.presented == before is not None


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        (SERVICE, None),
        ({"url": "https://192.0.2.1:9443/validate"}, None),
        ({"url": "https://Core.example.com:9443/validate"}, "tls.crt does not name core.example.com"),
        ({"url": "https://[2001:db8::1]:9443/validate"}, "tls.crt does not name 2001:db8::1"),
    ],
)
async def test_additional_host_is_required_when_a_webhook_uses_it(
    client: dict[str, Any], problem: str | None
) -> None:
    root = issued("root")
    async with turns("core.example.com", "2001:db8::1") as core:
        why = await core.take(root, issued("leaf", root, [HOST]), client)

    assert why == (problem and f"Secret {SYSTEM_NAMESPACE}/{NAME} is unusable: {problem}")
