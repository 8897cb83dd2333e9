"""`kubefoundry doctor`: is the installation whole, and what is wrong with the models on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

import click

from kubefoundry_cli import cluster, output, support_bundle
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.failure import Exit, of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import clean, say, since
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import DEPLOYMENTS, LEASES, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk.api.reasons import UPSTREAM_OPERATOR_UP, UPSTREAM_READY
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime.options import HEARTBEAT_TIMEOUT


@dataclass(frozen=True, slots=True)
class Finding:
    """good; wrong: it has to be corrected; unknown: it could not be looked at. text: what, and what to do."""

    state: Literal["good", "wrong", "unknown"]
    text: str


RENEWED: Final = 60.0
"""Seconds after which a Lease that nobody renews is nobody's, four times its duration."""

SIGNS: Final = {"good": "✔", "wrong": "✗", "unknown": "?"}


@click.command()
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Models of all namespaces.")
@click.option(
    "--bundle",
    "file",
    metavar="FILE",
    help="Also write what a maintainer needs as a tar.gz, without secrets.",
)
@output.option("table", "json", "yaml")
@cluster.options
def command(everywhere: bool, file: str | None, form: str, target: Target) -> None:
    """Check the installation: API server, components, providers, and the models of a namespace.

    Exit code 1 when something is wrong. What you may not read is marked with a question mark.
    """
    found = cluster.run(_examined(everywhere, file, target))
    if form == "table":
        for finding in found:
            print(f"{SIGNS[finding.state]} {clean(finding.text)}")
    else:
        output.data([asdict(finding) for finding in found], form)
    if any(finding.state == "wrong" for finding in found):
        raise SystemExit(Exit.NO)


async def _examined(everywhere: bool, file: str | None, target: Target) -> list[Finding]:
    async with cluster.session(target) as session:
        namespace = None if everywhere else session.namespace
        found = await examine(session, namespace)
        if file is not None:
            content = await support_bundle.collected(session, namespace, [asdict(one) for one in found])
            support_bundle.write(file, content)
            say(f"wrote {file}; look through it before you send it")
        return found


async def examine(session: Session, namespace: str | None) -> list[Finding]:
    """The installation, and the models of a namespace, of all where it is None. Raises Failure without a cluster."""
    try:
        server = await session.client.read("/version")
    except (ApiError, Unreachable) as error:
        raise of(error, "read the API server's version") from error
    found = [Finding("good", f"Kubernetes {server.get('gitVersion')} at {session.client.server}")]
    try:
        models, _ = await session.client.list(MODEL_DEPLOYMENTS, namespace)
    except (ApiError, Unreachable) as error:
        failure = of(error, "list ModelDeployments")
        if failure.exit_code == Exit.NO_CLUSTER:
            raise failure from error
        models = []
        found.append(Finding("unknown", failure.message))
    leases = await leases_of(session)
    found += await _listed(
        session, DEPLOYMENTS, names.SYSTEM_NAMESPACE, lambda found: components(found, leases)
    )
    found += await _listed(session, PROVIDER_CONFIGS, None, providers)
    return [*found, *failing(models, namespace)]


async def _listed(
    session: Session,
    kind: Kind,
    namespace: str | None,
    judge: Callable[[Sequence[Object]], Iterator[Finding]],
) -> list[Finding]:
    try:
        objects, _ = await session.client.list(kind, namespace)
    except (ApiError, Unreachable) as error:
        return [Finding("unknown", of(error, f"list {kind.plural}").message)]
    return list(judge(objects))


def components(deployments: Sequence[Object], leases: Sequence[Object]) -> Iterator[Finding]:
    """Our Deployments in kubefoundry-system, and our processes that run elsewhere and hold a Lease there."""
    elsewhere = [one for one in leases if outside(one, deployments)]
    for lease in elsewhere:
        name, holder = lease["metadata"]["name"], lease["spec"]["holderIdentity"]
        yield Finding("good", f"{name} runs outside this cluster (Lease held by {holder})")
    if not deployments and not elsewhere:
        yield Finding(
            "wrong",
            f"no Deployment in namespace {names.SYSTEM_NAMESPACE}; {hint('controller install')}",
        )
    for deployment in deployments:
        name, asked = deployment["metadata"]["name"], (deployment.get("spec") or {}).get("replicas", 1)
        up = (deployment.get("status") or {}).get("availableReplicas", 0)
        if up >= asked:
            yield Finding("good", f"{name}: {up} of {asked} replicas available")
        else:
            yield Finding(
                "wrong",
                f"{name}: {up} of {asked} replicas available; "
                f"kubectl -n {names.SYSTEM_NAMESPACE} describe deployment {name}",
            )


def outside(lease: Object, deployments: Sequence[Object]) -> bool:
    """Whether a process of ours holds that Lease, and no Deployment is its."""
    name, spec = str(lease["metadata"]["name"]), lease.get("spec") or {}
    silent = since(spec.get("renewTime"))
    return (
        name.startswith("kubefoundry-")
        and name not in {one["metadata"]["name"] for one in deployments}
        and bool(spec.get("holderIdentity"))
        and silent is not None
        and silent <= RENEWED
    )


async def leases_of(session: Session) -> list[Object]:
    """Leases of kubefoundry-system; none where they cannot be listed."""
    try:
        return (await session.client.list(LEASES, names.SYSTEM_NAMESPACE))[0]
    except (ApiError, Unreachable):
        return []


def providers(configs: Sequence[Object]) -> Iterator[Finding]:
    """Registered providers: heartbeat, upstream CRD, upstream operator."""
    if not configs:
        yield Finding(
            "wrong",
            "no provider is registered, so no model can be deployed; install one from manifests/providers",
        )
    for config in configs:
        name, status = config["metadata"]["name"], config.get("status") or {}
        silent = since(status.get("lastHeartbeat"))
        notes = [one for one in status.get("conditions") or () if one.get("status") == "False"]
        down = find(notes, UPSTREAM_OPERATOR_UP)
        if silent is None:
            yield Finding("wrong", f"provider {name} has never reported; is its Deployment running?")
        elif silent > HEARTBEAT_TIMEOUT:
            yield Finding(
                "wrong", f"provider {name} has not reported for {silent:.0f} s; is its Deployment running?"
            )
        elif status.get("ready") is not True:
            why = (find(status.get("conditions"), UPSTREAM_READY) or {}).get(
                "message"
            ) or "it gives no reason"
            yield Finding("wrong", f"provider {name} accepts no models: {why}")
        elif down is not None:
            yield Finding("wrong", f"provider {name}: its upstream operator is down: {down.get('message')}")
        else:
            told = "".join(f"; {note.get('type')} is False: {note.get('message')}" for note in notes)
            yield Finding("good", f"provider {name} is ready ({status.get('upstreamCRDVersion')}){told}")


def failing(models: Sequence[Object], namespace: str | None) -> Iterator[Finding]:
    """Models that need somebody: failed ones, in the words of their status."""
    where = f"namespace {namespace}" if namespace else "all namespaces"
    failed = [one for one in models if (one.get("status") or {}).get("phase") == "Failed"]
    for one in failed:
        meta = one["metadata"]
        yield Finding("wrong", f"model {meta['namespace']}/{meta['name']}: {(one['status']).get('message')}")
    if not failed:
        running = sum((one.get("status") or {}).get("phase") == "Running" for one in models)
        told = (
            f"{len(models)} model{'' if len(models) == 1 else 's'} in {where}, {running} running, none failed"
        )
        yield Finding("good", told if models else f"no models in {where}")
