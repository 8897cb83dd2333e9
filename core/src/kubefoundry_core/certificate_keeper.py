"""Keeps Secret, webhook configurations, the served certificate and CRDs in sync, in that order.

The leader creates and renews the material, unless `--webhook-secret` names a Secret that others maintain. Every
replica serves with it once both webhook configurations trust it, so the API server never meets a certificate that it
refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from prometheus_client import Gauge

from kubefoundry_core.admission.listener import Listener, check_loads
from kubefoundry_core.certificate_secret import SECRET, filled, read, read_existing
from kubefoundry_core.certificates import (
    Material,
    Unusable,
    check,
    check_existing,
    expiry,
    next_renewal,
    out_of_date,
    renewed,
    unnamed,
)
from kubefoundry_core.conversion import SERVICE
from kubefoundry_core.crd_protection import configuration
from kubefoundry_core.webhook_configurations import (
    CONFIGURATION,
    MUTATING,
    VALIDATING,
    called_hosts,
    conversion_patch,
    covers,
    evaluates_conditions,
    only_conversion,
    patch,
)
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, SECRETS, Kind, Object
from kubefoundry_sdk._api.names import CORE_MANAGER
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key, Store
from kubefoundry_sdk._runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

_TURN: Key = ("", "certificates")

EXPIRY: Final = Gauge(
    "kubefoundry_webhook_certificate_expiration_timestamp_seconds",
    "Unix time at which the certificate that the webhooks present expires, by the Secret that holds it.",
    ["secret"],
)

LONGEST: Final = 3600.0
"""The most seconds between two checks: the clock may be set meanwhile, which changes the time of the next renewal."""

AGAIN: Final = 60.0
"""Seconds until a failed attempt to protect the CRDs is repeated."""


def hosts_of(namespace: str, extra: Sequence[str]) -> list[str]:
    """Return the leaf's names: those of the Services, and those from `--webhook-host`.

    Pods use the shorter names. The name of the conversion's Service is always in the leaf, so that the leaf is not
    replaced when the conversion is switched on.
    """
    service = "kubefoundry-core"
    names = [f"{service}.{namespace}.svc", f"{service}.{namespace}", service]
    return [*names, f"{SERVICE}.{namespace}.svc", *extra]


class CertificateKeeper:
    """Creates and renews the certificates, makes the API server trust them, and serves with them (see the module)."""

    def __init__(
        self, process: Process, listener: Listener, extra_hosts: Sequence[str], existing_secret: str = ""
    ) -> None:
        """Watch the Secret and the configurations.

        Args:
            process: The process.
            listener: The server that presents the certificate.
            extra_hosts: Names of the leaf besides the Service's.
            existing_secret: The Secret that others maintain; empty for core's own.
        """
        self._is_own = not existing_secret
        self._name = existing_secret or SECRET
        self._process = process
        self._listener = listener
        self._hosts = hosts_of(process.namespace, extra_hosts)
        self._secrets = process.watch(SECRETS, namespace=process.namespace, selector=_named(self._name))
        self._configurations = {
            kind: process.watch(kind, selector=_named(CONFIGURATION)) for kind in (MUTATING, VALIDATING)
        }
        # Only changes of a CRD's conversion matter. Without conversion, core serves even if it cannot watch the CRDs.
        self._crds = {kind.crd: Store(trim=only_conversion) for kind in (MODEL_DEPLOYMENTS, PROVIDER_CONFIGS)}
        for name, store in self._crds.items():
            follow = partial(
                process.follow, CRDS, store, store=store, selector=_named(name), refused=lambda: None
            )
            process.background(f"watch of {name}", follow)
        self._conditions: bool | None = None
        self._queue = WorkQueue("certificates", self._turn)
        self._problem: str | None = "the webhook server is not running yet"
        for store in (self._secrets, *self._configurations.values(), *self._crds.values()):
            store.subscribe(lambda key, obj: self._queue.add(_TURN))
        process.background("certificates", self._work)
        process.while_leading("renewal of certificates", self._begin_to_lead)
        process.ready_when(self._ready)

    def _ready(self) -> str | None:
        """Return why the process is not ready, or None. Dates are checked again: the clock may have been set."""
        presented = self._listener.presented
        why = presented and out_of_date(presented, datetime.now(UTC))
        if why:
            self._queue.add(_TURN)
        return self._problem or (f"the webhook's certificate is not accepted: {why}" if why else None)

    def _report_problem(self, problem: str) -> None:
        """Report the problem in `/readyz`, unless a good certificate is presented anyway."""
        presented = self._listener.presented
        if presented is None or out_of_date(presented, datetime.now(UTC)):
            self._problem = problem

    async def _work(self) -> None:
        for store in (self._secrets, *self._configurations.values()):
            await store.synced.wait()
        self._queue.add(_TURN)
        await self._queue.run(1)

    async def _begin_to_lead(self) -> None:
        self._queue.add(_TURN)

    async def _turn(self, key: Key) -> float | None:
        """Reconcile Secret, configurations and served certificate once. Return the seconds until the next check."""
        now = datetime.now(UTC)
        secret = self._secrets.get((self._process.namespace, self._name))
        material = self._usable(secret)
        wait = LONGEST
        if self._process.leading.is_set():
            if self._is_own:
                material = await self._renew(secret, material, now)
            if material is not None:
                await self._publish(material.bundle)
                if not await self._protect_crds(material.bundle):
                    wait = AGAIN
        if material is None:
            if secret is None:
                self._report_problem(f"Secret {self._process.namespace}/{self._name} does not exist yet")
            return None
        await self._present(material, now)
        if self._process.leading.is_set():
            # Last, because a missing permission raises. Conversions fail meanwhile, so the queue soon tries again.
            await self._publish_to_crds(material.bundle)
        if not self._is_own:
            return wait
        return min(wait, max(1.0, (next_renewal(material, now) - now).total_seconds()))

    async def _present(self, material: Material, now: datetime) -> None:
        """Serve with the certificate if the API server trusts it, otherwise set the problem."""
        if missing := [kind.kind for kind, live in self._live() if live is None]:
            self._problem = f"{' and '.join(missing)} {CONFIGURATION} not found: apply the manifest of core"
        elif self._is_trusted(material, now):
            await self._listener.present(material)
            EXPIRY.labels(self._name).set(expiry(material).timestamp())
            self._problem = None
        elif self._listener.presented is None:
            uncovered = f"caBundle of {CONFIGURATION} does not cover the certificate yet"
            self._problem = f"the webhook server is not running: {out_of_date(material, now) or uncovered}"

    def _usable(self, secret: Object | None) -> Material | None:
        if secret is None:
            return None
        try:
            if self._is_own:
                material = read(secret)
                check(material)
            else:
                material = read_existing(secret)
                service = self._hosts[0]
                webhooks = [live for _, live in self._live() if live]
                check_existing(material, [service, *self._called_hosts(webhooks)])
            check_loads(material)
            if not self._is_own:
                self._check_conversion(material)
        except Unusable as error:
            problem = f"Secret {self._process.namespace}/{self._name} is unusable: {error}"
            self._report_problem(problem)
            log.error("the webhook's certificate cannot be used", extra=logs.values(problem=problem))
            return None
        return material

    def _check_conversion(self, material: Material) -> None:
        """Check whether a leaf names the hosts of conversions.

        Admission does not need these names, so the leaf is accepted unless the presented one is better.

        Raises:
            Unusable: The leaf lacks a name, and the presented leaf is still good for conversions.
        """
        hosts = self._called_hosts(self._live_crds())
        missing, presented = unnamed(material, hosts), self._listener.presented
        if not missing:
            return
        if presented and not unnamed(presented, hosts) and not out_of_date(presented, datetime.now(UTC)):
            raise Unusable(f"tls.crt does not name {missing[0]}")
        log.error(
            "conversions fail, because tls.crt does not name a host; issue it with this name, "
            "or switch the conversion off",
            extra=logs.values(secret=f"{self._process.namespace}/{self._name}", host=missing[0]),
        )

    def _called_hosts(self, callers: Sequence[Object]) -> list[str]:
        """Return those of the leaf's names that the API server uses to call webhooks or conversions."""
        used = {host for live in callers for host in called_hosts(live)}
        return [host for host in self._hosts if host.lower() in used]

    async def _renew(self, secret: Object | None, material: Material | None, now: datetime) -> Material:
        """Return the required material once it is stored. A missing or unusable Secret causes a new authority."""
        before = material or self._listener.presented
        if before and (why := out_of_date(before, now)):
            log.warning("the webhook's certificate is replaced", extra=logs.values(why=why))
        renewal = renewed(before, self._hosts, now, new_authority=material is None)
        if renewal is None:
            assert before is not None
            return before
        body = filled(renewal, secret, self._process.namespace)
        self._secrets.put(await self._stored(body, new=secret is None))
        log.info("webhook certificates renewed", extra=logs.values(authorities=len(renewal.authorities)))
        return renewal

    async def _stored(self, body: Object, *, new: bool) -> Object:
        """Write the Secret and return it as stored. `/readyz` reports a refusal until a certificate is served."""
        client = self._process.client
        try:
            if new:
                return await client.create(SECRETS, body, manager=CORE_MANAGER)
            return await client.replace(SECRETS, body, manager=CORE_MANAGER)
        except ApiError as error:
            if error.rejected:
                # An immutable Secret, for example: core creates another one as soon as it is gone.
                remedy = "" if new or error.code == 403 else "; delete it"
                self._report_problem(
                    f"Secret {self._process.namespace}/{SECRET} cannot be written: {error.message}{remedy}"
                )
            raise

    async def _protect_crds(self, bundle: bytes) -> bool:
        """Apply the webhook configuration that protects the CRDs while models exist. Return False if that failed.

        The configuration is not watched: an administrator who deletes it wants to delete the CRDs next.
        """
        core = self._configurations[VALIDATING].get(("", CONFIGURATION))
        if core is None:
            return True
        client = self._process.client
        try:
            crd = await client.get(CRDS, MODEL_DEPLOYMENTS.crd)
            if body := configuration(core, crd, bundle):
                await client.apply(VALIDATING, body, manager=CORE_MANAGER)
        except ApiError as error:
            # This must not stop the turn: certificates do not need the missing permission.
            log.warning("the CRDs are not protected from deletion", extra=logs.values(error=str(error)))
            return False
        return True

    async def _publish(self, bundle: bytes) -> None:
        if self._conditions is None:
            self._conditions = evaluates_conditions(await self._process.client.read("/version"))
        for kind, live in self._live():
            body = patch(kind, live, bundle, conditions=self._conditions) if live else None
            if body:
                stored = await self._process.client.apply(kind, body, manager=CORE_MANAGER)
                self._configurations[kind].put(stored)
                log.info("caBundle applied", extra=logs.values(kind=kind.kind, name=CONFIGURATION))

    async def _publish_to_crds(self, bundle: bytes) -> None:
        """Make the API server trust the conversions of the CRDs that ask for them."""
        for crd in self._live_crds():
            if body := conversion_patch(crd, bundle):
                name = crd["metadata"]["name"]
                self._crds[name].put(await self._process.client.apply(CRDS, body, manager=CORE_MANAGER))
                log.info("caBundle applied", extra=logs.values(kind="CustomResourceDefinition", name=name))

    def _is_trusted(self, material: Material, now: datetime) -> bool:
        """Check that the webhooks' caBundles cover the leaf, and no CRD's covers only the presented one."""
        presented = self._listener.presented
        return all(covers(live, material, now) for _, live in self._live() if live) and all(
            covers(crd, material, now) or presented is None or not covers(crd, presented, now)
            for crd in self._live_crds()
        )

    def _live(self) -> list[tuple[Kind, Object | None]]:
        return [(kind, store.get(("", CONFIGURATION))) for kind, store in self._configurations.items()]

    def _live_crds(self) -> list[Object]:
        return [crd for store in self._crds.values() for crd in store.objects()]


def _named(name: str) -> dict[str, str]:
    return {"fieldSelector": f"metadata.name={name}"}
