"""Keeps Secret, webhook configurations and the served certificate in sync, in that order.

The leader creates and renews the material. Every replica serves with it once both webhook configurations trust it, so
the API server never meets a certificate that it refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from kubefoundry_core.admission.listener import Listener
from kubefoundry_core.certificate_secret import SECRET, filled, read
from kubefoundry_core.certificates import Material, Unusable, check, next_renewal, renewed
from kubefoundry_core.webhook_configurations import (
    CONFIGURATION,
    MUTATING,
    VALIDATING,
    covers,
    evaluates_conditions,
    patch,
)
from kubefoundry_sdk.api.kinds import SECRETS, Kind, Object
from kubefoundry_sdk.api.names import CORE_MANAGER
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Key
from kubefoundry_sdk.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

_TURN: Key = ("", "certificates")


def hosts_of(namespace: str, extra: Sequence[str]) -> list[str]:
    """What the leaf covers: the Service's names for the API server and for pods, and those from `--webhook-host`."""
    service = "kubefoundry-core"
    return [f"{service}.{namespace}.svc", f"{service}.{namespace}", service, *extra]


class CertificateKeeper:
    def __init__(self, process: Process, listener: Listener, extra_hosts: Sequence[str]) -> None:
        self._process = process
        self._listener = listener
        self._hosts = hosts_of(process.namespace, extra_hosts)
        self._secrets = process.watch(SECRETS, namespace=process.namespace, selector=_named(SECRET))
        self._configurations = {
            kind: process.watch(kind, selector=_named(CONFIGURATION)) for kind in (MUTATING, VALIDATING)
        }
        self._conditions: bool | None = None
        self._queue = WorkQueue("certificates", self._turn)
        self._problem: str | None = "the webhook server is not running yet"
        for store in (self._secrets, *self._configurations.values()):
            store.subscribe(lambda key, obj: self._queue.add(_TURN))
        process.background("certificates", self._work)
        process.while_leading("renewal of certificates", self._begin_to_lead)
        process.ready_when(lambda: self._problem)

    async def _work(self) -> None:
        for store in (self._secrets, *self._configurations.values()):
            await store.synced.wait()
        self._queue.add(_TURN)
        await self._queue.run(1)

    async def _begin_to_lead(self) -> None:
        self._queue.add(_TURN)

    async def _turn(self, key: Key) -> float | None:
        """Checks all three once; returns the seconds until the next check."""
        now = datetime.now(UTC)
        secret = self._secrets.get((self._process.namespace, SECRET))
        material = self._usable(secret)
        if self._process.leading.is_set():
            material = await self._renew(secret, material, now)
            await self._publish(material.bundle)
        if material is None:
            self._problem = f"Secret {SECRET} holds no certificate yet"
            return None
        missing = [kind.kind for kind, live in self._live() if live is None]
        if missing:
            self._problem = f"{' and '.join(missing)} {CONFIGURATION} not found: apply the manifest of core"
        elif all(covers(live, material, now) for _, live in self._live() if live):
            await self._listener.present(material)
            self._problem = None
        elif self._listener.presented is None:
            self._problem = f"caBundle of {CONFIGURATION} does not cover the certificate yet"
        return max(1.0, (next_renewal(material, now) - now).total_seconds())

    def _usable(self, secret: Object | None) -> Material | None:
        if secret is None:
            return None
        try:
            material = read(secret)
            check(material)
        except Unusable as error:
            log.error("Secret %s/%s is unusable: %s", self._process.namespace, SECRET, error)
            return None
        return material

    async def _renew(self, secret: Object | None, material: Material | None, now: datetime) -> Material:
        """The required material, stored. A deleted Secret causes a new authority."""
        before = material or self._listener.presented
        wanted = renewed(before, self._hosts, now, new_authority=material is None)
        if wanted is None:
            assert before is not None
            return before
        body = filled(wanted, secret, self._process.namespace)
        client = self._process.client
        if secret is None:
            stored = await client.create(SECRETS, body, manager=CORE_MANAGER)
        else:
            stored = await client.replace(SECRETS, body, manager=CORE_MANAGER)
        self._secrets.put(stored)
        log.info("webhook certificates renewed: %d authorities in the bundle", len(wanted.authorities))
        return wanted

    async def _publish(self, bundle: bytes) -> None:
        if self._conditions is None:
            self._conditions = evaluates_conditions(await self._process.client.read("/version"))
        for kind, live in self._live():
            body = patch(kind, live, bundle, conditions=self._conditions) if live else None
            if body:
                stored = await self._process.client.apply(kind, body, manager=CORE_MANAGER)
                self._configurations[kind].put(stored)
                log.info("caBundle applied to %s %s", kind.kind, CONFIGURATION)

    def _live(self) -> list[tuple[Kind, Object | None]]:
        return [(kind, store.get(("", CONFIGURATION))) for kind, store in self._configurations.items()]


def _named(name: str) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name={name}"}
