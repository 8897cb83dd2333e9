"""Webhook certificates are replaced under load, and no bad object is admitted meanwhile (the webhooks fail open)."""

from __future__ import annotations

import asyncio
import base64
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kubefoundry_core.certificate_keeper import hosts_of
from kubefoundry_core.certificate_secret import SECRET, filled, read
from kubefoundry_core.certificates import AUTHORITY_LIFE, Material, renewed
from kubefoundry_core.webhook_configurations import CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import NAMESPACE, PROBE, Component, Suite
from kubefoundry_sdk._api.kinds import SECRETS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.admission import BY_WEBHOOK, REFUSED_BY_WEBHOOK, refusal, until_refused_by_webhook
from support.deployments import CPU
from support.server_metrics import samples, total
from support.set_clock import FILE
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration


WORDS = (
    'spec.engine.args[ctx-size]: is "4096" but engine.contextLength is "8192": set only engine.contextLength'
)
RATE = 24.0
"""Requests a second: two creates, a bad one and a good one, to each look at what the API server trusts."""


@dataclass(slots=True)
class Load:
    """good, bad: how many were answered as they should be. wrong: the other answers."""

    good: int = 0
    bad: int = 0
    wrong: list[str] = field(default_factory=list)
    answered: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def one(self, api: Client, namespace: str, *, bad: bool) -> None:
        reported = await refusal(api, namespace, REFUSED_BY_WEBHOOK if bad else CPU)
        if bad and reported.startswith(BY_WEBHOOK) and reported.endswith(WORDS):
            self.bad += 1
        elif not bad and not reported:
            self.good += 1
        else:
            self.wrong.append(reported or "a bad one was taken")
        async with self.answered:
            self.answered.notify_all()

    async def until_answered(self, more: int) -> None:
        """Returns when that many more of each were answered as they should be, or one was not."""
        good, bad = self.good + more, self.bad + more
        async with asyncio.timeout(4 * SECONDS), self.answered:
            await self.answered.wait_for(lambda: self.wrong or (self.good >= good and self.bad >= bad))


@asynccontextmanager
async def load(suite: Suite, namespace: str) -> AsyncIterator[Load]:
    """Eight clients that try to create good and bad objects (dry runs) while the block runs.

    An API server keeps its connections, so each client also connects again, as an API server would that has heard of
    no change for as long as two creates take.
    """
    made = Load()
    stop = asyncio.Event()
    core = suite.components["core"]
    who = credentials.from_kubeconfig(str(suite.plane.kubeconfig))

    async def work(api: Client) -> None:
        while not stop.is_set():
            [bundle] = bundles(await api.get(VALIDATING, CONFIGURATION))
            await made.one(api, namespace, bad=True)
            await made.one(api, namespace, bad=False)
            try:
                await presented(core, base64.b64decode(bundle).decode())
            except ssl.SSLError as error:
                made.wrong.append(str(error))

    async with Client(who, user_agent="load", qps=RATE) as api, asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(work(api))
        try:
            yield made
        finally:
            stop.set()


def failed_open(suite: Suite) -> float:
    """How often the API server let an object pass because a webhook did not answer."""
    return total(samples(suite.plane, "apiserver_admission_webhook_fail_open_count"))


async def stored(api: Client, holds: Callable[[Material], bool]) -> Material:
    """The material in the Secret, once `holds` is true of it."""
    secret = await until(api, SECRETS, SECRET, NAMESPACE, lambda obj: obj is not None and holds(read(obj)))
    assert secret is not None
    return read(secret)


async def presented(core: Component, authorities: str) -> bytes:
    """The leaf that the webhook presents, DER. Raises SSLError when it is of none of these authorities (PEM)."""
    context = ssl.create_default_context(cadata=authorities)
    port = int(core.environment["KUBEFOUNDRY_WEBHOOK_PORT"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
        return tls.getpeercert(binary_form=True) or b""
    finally:
        writer.close()
        await writer.wait_closed()


async def until_presented(core: Component, material: Material) -> None:
    """Returns once the webhook presents that leaf."""
    leaf = x509.load_pem_x509_certificate(material.leaf).public_bytes(Encoding.DER)
    async with asyncio.timeout(SECONDS):
        while True:
            if await presented(core, material.bundle.decode()) == leaf:
                return
            await asyncio.sleep(PROBE)


async def test_authority_and_leaf_are_renewed_under_load(fresh: Suite, api: Client, namespace: str) -> None:
    core = fresh.install("core")
    made = datetime.now(UTC) - AUTHORITY_LIFE * 2 / 3 + timedelta(seconds=30)
    old = renewed(None, hosts_of(NAMESPACE, ["127.0.0.1"]), made)
    assert old is not None
    await api.create(SECRETS, filled(old, None, NAMESPACE), manager="test")
    fresh.start("core")
    before = await stored(api, lambda now: now.leaf != old.leaf)
    assert before.authorities == old.authorities
    passed = await until_asked(fresh, api, namespace)

    async with load(fresh, namespace) as reported:
        both = await stored(api, lambda now: len(now.authorities) == 2)
        assert both.authorities[1:] == old.authorities
        assert both.leaf == before.leaf
        await reported.until_answered(40)
        after = await stored(api, lambda now: now.leaf != before.leaf)
        await until_presented(core, after)
        await reported.until_answered(40)

    assert (reported.wrong, failed_open(fresh)) == ([], passed)


@pytest.mark.parametrize("lost", ["deleted", "broken"])
async def test_lost_certificate_secret_is_recreated_under_load(
    fresh: Suite, api: Client, namespace: str, lost: str
) -> None:
    fresh.start("core")
    before = await stored(api, bool)
    secret = await api.get(SECRETS, SECRET, NAMESPACE)
    passed = await until_asked(fresh, api, namespace)

    async with load(fresh, namespace) as reported:
        await reported.until_answered(20)
        if lost == "deleted":
            await api.delete(SECRETS, SECRET, NAMESPACE, uid=secret["metadata"]["uid"])
        else:
            secret["data"]["tls.key"] = secret["data"]["ca.key"]
            await api.replace(SECRETS, secret, manager="somebody")
        after = await stored(api, lambda now: len(now.authorities) == 2 and now.leaf != before.leaf)
        await until_presented(fresh.components["core"], after)
        await reported.until_answered(20)

    assert after.authorities[1:] == before.authorities
    assert (reported.wrong, failed_open(fresh)) == ([], passed)


async def test_spoilt_ca_bundle_is_restored(fresh: Suite, api: Client, namespace: str) -> None:
    fresh.start("core")
    material = await stored(api, bool)
    bundle = base64.b64encode(material.bundle).decode()
    other = renewed(None, ["127.0.0.1"], datetime.now(UTC))
    assert other is not None

    for spoilt in ("", base64.b64encode(other.bundle).decode()):
        for kind in (MUTATING, VALIDATING):
            live = await api.get(kind, CONFIGURATION)
            for webhook in live["webhooks"]:
                webhook["clientConfig"]["caBundle"] = spoilt
            await api.replace(kind, live, manager="somebody")
            await until(api, kind, CONFIGURATION, None, lambda obj: obj and bundles(obj) == {bundle})

        await until_refused_by_webhook(api, namespace)


async def test_clock_set_back_replaces_certificates_of_the_future(
    fresh: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    core = fresh.install("core")
    clock = tmp_path / "ahead"
    clock.write_text("400")
    core.command = [sys.executable, "-m", "support.set_clock", *core.command[1:]]
    core.environment |= {"PYTHONPATH": str(ROOT / "tests"), FILE: str(clock)}
    core.start()
    core.wait_ready()
    ahead = await stored(api, bool)

    clock.write_text("0")
    await until_readyz(core, "the webhook's certificate is not accepted: its authority is valid from")
    core.wait_ready()

    await until_refused_by_webhook(api, namespace)
    after = await stored(api, lambda now: now.leaf != ahead.leaf)
    assert not set(after.authorities) & set(ahead.authorities)
    replaced = [line for line in core.log.read_text().splitlines() if "certificate is replaced" in line]
    assert [line for line in replaced if '"why": "its authority is valid from' in line]


@pytest.mark.parametrize("running", [False, True])
async def test_secret_of_the_future_is_replaced(
    fresh: Suite, api: Client, namespace: str, running: bool
) -> None:
    core = fresh.install("core")
    ahead = renewed(None, hosts_of(NAMESPACE, ["127.0.0.1"]), datetime.now(UTC) + timedelta(days=400))
    assert ahead is not None
    if running:
        fresh.start("core")
        secret = await api.get(SECRETS, SECRET, NAMESPACE)
        await api.replace(SECRETS, filled(ahead, secret, NAMESPACE), manager="administrator")
    else:
        await api.create(SECRETS, filled(ahead, None, NAMESPACE), manager="administrator")
        core.start()

    await stored(api, lambda now: now.leaf != ahead.leaf and ahead.authorities[0] not in now.authorities)
    core.wait_ready()

    await until_refused_by_webhook(api, namespace)


async def test_readyz_names_an_immutable_broken_secret(fresh: Suite, api: Client) -> None:
    core = fresh.install("core")
    broken = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "immutable": True,
        "data": {"tls.crt": "Z2FyYmFnZQ=="},
    }
    await api.create(SECRETS, broken, manager="administrator")
    core.start()

    answer = await until_readyz(core, f"Secret {NAMESPACE}/{SECRET} cannot be written")
    secret = await api.get(SECRETS, SECRET, NAMESPACE)
    await api.delete(SECRETS, SECRET, NAMESPACE, uid=secret["metadata"]["uid"])
    core.wait_ready()

    assert "immutable" in answer
    assert answer.endswith("; delete it\n")


async def until_readyz(core: Component, begins: str) -> str:
    """Return the answer of /readyz once it begins so."""
    async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(f"http://127.0.0.1:{core.health_port}/readyz") as answer:
                    if (text := await answer.text()).startswith(begins):
                        return text
            await asyncio.sleep(PROBE)


async def until_asked(suite: Suite, api: Client, namespace: str) -> float:
    """As `failed_open`, once the API server has heard of both webhooks and trusts them."""
    async with asyncio.timeout(SECONDS):
        while True:
            before = failed_open(suite)
            await until_refused_by_webhook(api, namespace)
            if failed_open(suite) == before:
                return before


def bundles(configuration: Object) -> set[str]:
    return {webhook["clientConfig"].get("caBundle", "") for webhook in configuration["webhooks"]}
