"""Examine an installation, or one model: the findings that `kubefoundry doctor` and the page show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_cli import server
from kubefoundry_cli.checks import one_model
from kubefoundry_cli.checks.finding import Finding, Unlisted, listed
from kubefoundry_cli.checks.models import (
    DRIFT,
    REFUSED,
    changed_by_others,
    pods_of,
    references,
    refused_writes,
    verdicts,
)
from kubefoundry_cli.checks.versions import versions
from kubefoundry_cli.checks.webhooks import webhooks
from kubefoundry_cli.cluster import Session, no_namespace
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.install import bundle
from kubefoundry_cli.output import duration, since
from kubefoundry_cli.providers import silence
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import (
    CORE_EVENTS,
    DEPLOYMENTS,
    LEASES,
    PROVIDER_CONFIGS,
    Object,
)
from kubefoundry_sdk._api.reasons import REGISTRATION_APPLIED, UPSTREAM_OPERATOR_UP, UPSTREAM_READY
from kubefoundry_sdk._api.untrusted import mappings, part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

RENEWED: Final = 60.0
"""Seconds without a renewal after which a Lease is stale: four times its duration."""


PROVIDER_PROCESS: Final = "kubefoundry-provider-"
"""The beginning of the names of providers' Deployments and Leases."""

UNKNOWN: Final = (
    f"no Deployment in namespace {names.SYSTEM_NAMESPACE}; whether KubeFoundry runs elsewhere is unknown without "
    "its Leases"
)
"""What is known of processes where the Leases cannot be listed."""


async def examine_model(session: Session, obj: Object) -> list[Finding]:
    """Check one model: its status, its provider, its Secret, its pods, and other writers of its upstream object."""
    # Imported here, because the checks of the installation do not need it.
    from kubefoundry_cli.pods import NotToBeFound, of_model

    findings = list(one_model.judged(obj))
    name, namespace = provider_of(obj), obj["metadata"]["namespace"]
    if name:
        findings += await listed(
            session,
            PROVIDER_CONFIGS,
            None,
            lambda all_of_them: providers(
                [config for config in all_of_them if config["metadata"]["name"] == name]
            ),
        )
    findings += await references(session, [obj])
    findings += await _of_events(session, [obj], namespace, f",involvedObject.name={obj['metadata']['name']}")
    try:
        findings += one_model.of_pods(await of_model(session, obj))
    except NotToBeFound as error:
        findings.append(Finding("unknown", f"cannot look at the pods: {error}"))
    return findings


async def examine(session: Session, namespace: str | None) -> list[Finding]:
    """Check the installation and the models in a namespace (None: in all). Raises Failure without a cluster."""
    release = await server.version(session)
    old = server.too_old(release)
    supported = Finding("good", f"Kubernetes {release} at {session.client.server}")
    findings = [Finding("wrong", old) if old else supported]
    models: list[Object] | None
    try:
        models, _ = await session.models(namespace)
    except Failure as failure:
        if failure.exit_code == Exit.NO_CLUSTER:
            raise _absent(failure, old) from failure
        models = None
        findings.append(Unlisted("unknown", failure.message))
    leases, refused = await leases_of(session)
    if refused:
        findings.append(Finding("unknown", refused.message))
    findings += await listed(
        session, DEPLOYMENTS, names.SYSTEM_NAMESPACE, lambda deployments: components(deployments, leases)
    )
    findings += await webhooks(session)
    findings += await listed(session, PROVIDER_CONFIGS, None, providers)
    findings += await versions(session)
    findings += await references(session, models or ())
    findings += await _of_events(session, models or (), namespace)
    if models == [] and namespace and await session.is_missing(namespace):
        findings.append(Finding("wrong", no_namespace(namespace)))
    elif models is not None:
        findings += [*verdicts(models, namespace), *await pods_of(session, models)]
    # the same permission may be missing for several checks
    return list(dict.fromkeys(findings))


async def _of_events(
    session: Session, models: Sequence[Object], namespace: str | None, more: str = ""
) -> list[Finding]:
    """Return the findings that only Events show: other writers, and writes that admission refuses or changes.

    Args:
        session: The session.
        models: The models.
        namespace: Their namespace, None for all.
        more: What the field selector of the Events has in addition.
    """

    async def found(events: str, judge: Callable[[Sequence[Object]], Iterator[Finding]]) -> list[Finding]:
        return await listed(session, CORE_EVENTS, namespace, judge, {"fieldSelector": events + more})

    drift = await found(DRIFT, changed_by_others)
    return [*drift, *await found(REFUSED, lambda events: refused_writes(events, models))]


def _absent(failure: Failure, old: str | None) -> Failure:
    return Failure(f"{failure.message}. {old}", Exit(failure.exit_code)) if old else failure


def components(deployments: Sequence[Object], leases: Sequence[Object] | None) -> Iterator[Finding]:
    """Check our Deployments in kubefoundry-system, and the processes elsewhere that have a Lease there.

    Without the Leases (None), nothing is known about processes elsewhere.
    """
    if leases is None and not deployments:
        yield Finding("unknown", UNKNOWN)
        return
    leases = leases or ()
    elsewhere = [lease for lease in leases if outside(lease, deployments)]
    yield from map(_process_elsewhere, elsewhere)
    if not deployments and not elsewhere:
        yield Finding(
            "wrong",
            f"no Deployment in namespace {names.SYSTEM_NAMESPACE}; {hint('controller install')}",
        )
    by_name = {lease["metadata"]["name"]: lease for lease in leases}
    for deployment in deployments:
        yield _component(deployment, by_name.get(deployment["metadata"]["name"]))


def _process_elsewhere(lease: Object) -> Finding:
    name = lease["metadata"]["name"]
    if not held(lease):
        return Finding("wrong", _stopped(name, lease))
    holder = lease["spec"]["holderIdentity"]
    return Finding("good", f"{name} runs outside this cluster (Lease held by {holder})")


def _component(deployment: Object, lease: Object | None) -> Finding:
    name, desired = deployment["metadata"]["name"], part(deployment, "spec").get("replicas", 1)
    up = part(deployment, "status").get("availableReplicas", 0)
    available = f"{name}: {up} of {desired} replicas available"
    if up < desired:
        return Finding(
            "wrong", f"{available}; {kubectl(f'describe deployment {name}', names.SYSTEM_NAMESPACE)}"
        )
    if lease is None:
        return Finding("good", available)
    if not held(lease):
        return Finding("wrong", _nobody(name, lease))
    return Finding("good", f"{available}, Lease held by {lease['spec']['holderIdentity']}")


def _stopped(name: str, lease: Object) -> str:
    provider = name.removeprefix(PROVIDER_PROCESS)
    if provider == name:
        install = hint("controller install")
    else:
        install = hint(f"provider install {provider if provider in bundle.providers() else 'FILE'}")
    return (
        f"{name}: its Lease is held by {holder_of(lease)}, and it has no Deployment in this cluster, so it does no "
        f"work; start it again where it ran, or {install}"
    )


def _nobody(name: str, lease: Object) -> str:
    return (
        f"{name}: its Lease is held by {holder_of(lease)}, so it does no work; "
        f"{kubectl(f'logs deployment/{name}', names.SYSTEM_NAMESPACE)}"
    )


def holder_of(lease: Object) -> str:
    """Return the holder of a Lease, and for how long a stale Lease has not been renewed."""
    spec = lease.get("spec") or {}
    silent, holder = since(spec.get("renewTime")), spec.get("holderIdentity")
    if held(lease):
        return str(holder)
    return f"{holder or 'nobody'}, not renewed for {silent:.0f} s" if silent is not None else "nobody"


def held(lease: Object) -> bool:
    """Check whether a process renews the Lease."""
    spec = lease.get("spec") or {}
    silent = since(spec.get("renewTime"))
    return bool(spec.get("holderIdentity")) and silent is not None and silent <= RENEWED


def outside(lease: Object, deployments: Sequence[Object]) -> bool:
    """Check whether the Lease belongs to a KubeFoundry process without a Deployment in this cluster."""
    name = str(lease["metadata"]["name"])
    return name.startswith("kubefoundry-") and name not in {
        deployment["metadata"]["name"] for deployment in deployments
    }


async def leases_of(session: Session) -> tuple[list[Object] | None, Failure | None]:
    """Return the Leases of kubefoundry-system, or None and the failure if they cannot be listed.

    A provider that was removed leaves its Lease there. Such a Lease is left out.
    """
    try:
        leases, _ = await session.client.list(LEASES, names.SYSTEM_NAMESPACE)
    except (ApiError, Unreachable) as error:
        return None, of(error, "list leases")
    try:
        configs, _ = await session.client.list(PROVIDER_CONFIGS)
    except (ApiError, Unreachable):
        return leases, None
    registered = {PROVIDER_PROCESS + config["metadata"]["name"] for config in configs}
    return [
        lease
        for lease in leases
        if held(lease)
        or not lease["metadata"]["name"].startswith(PROVIDER_PROCESS)
        or lease["metadata"]["name"] in registered
    ], None


def providers(configs: Sequence[Object]) -> Iterator[Finding]:
    """Check the registered providers: heartbeat, upstream CRD, upstream operator."""
    if not configs:
        yield Finding(
            "wrong",
            f"no provider is registered, so no model can be deployed; {hint('provider install NAME')}",
        )
    yield from map(_registered_provider, configs)


def _registered_provider(config: Object) -> Finding:
    name, status = f"provider {config['metadata']['name']}", part(config, "status")
    process = kubectl(
        f"describe deployment kubefoundry-provider-{config['metadata']['name']}", names.SYSTEM_NAMESPACE
    )
    if since(status.get("lastHeartbeat")) is None:
        return Finding("wrong", f"{name} has never reported; {process}")
    if silent := silence(config):
        return Finding("wrong", f"{name} has not reported for {duration(silent)}; {process}")
    conditions = mappings(status.get("conditions"))
    if changed := find(conditions, REGISTRATION_APPLIED):
        return Finding("wrong", f"{name}: {changed.get('message')}")
    if status.get("ready") is not True:
        why = part(find(conditions, UPSTREAM_READY)).get("message") or "it gives no reason"
        return Finding("wrong", f"{name} accepts no models: {why}")
    return _ready_provider(name, status, conditions)


def _ready_provider(name: str, status: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> Finding:
    notes = [condition for condition in conditions if condition.get("status") == "False"]
    if (down := find(notes, UPSTREAM_OPERATOR_UP)) is not None:
        return Finding("wrong", f"{name}: its upstream operator is down: {down.get('message')}")
    doubts = "".join(f"; {note.get('type')} is False: {note.get('message')}" for note in notes)
    flags = "".join(f", {flag}={text}" for flag, text in sorted(part(status, "flags").items()))
    running = f"{status.get('version')}, {status.get('upstreamCRDVersion')}{flags}"
    return Finding("good", f"{name} is ready ({running}){doubts}")
