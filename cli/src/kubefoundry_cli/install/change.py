"""Plan the changes of a manifest by a dry run on the API server, then apply them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.install import ownership
from kubefoundry_cli.install.refused import Refused, together
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, NAMESPACES, Kind, Object
from kubefoundry_sdk._api.names import PREFIX, SYSTEM_NAMESPACE, provider_finalizer
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.write.drift import differences

FIRST: Final = ("CustomResourceDefinition", "Namespace")
"""Kinds to apply first, because other objects need them. The rest follows in the manifest's order."""

SECONDS: Final = 60.0
"""Seconds to wait until the API server serves an applied CRD."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one object.

    Attributes:
        kind: The kind of the object.
        body: The object in the manifest.
        live: The object in the cluster, None if it does not exist.
        paths: The paths whose values would change.
    """

    kind: Kind
    body: Object
    live: Object | None
    paths: tuple[str, ...] = ()

    @property
    def state(self) -> Literal["create", "change", "unchanged"]:
        """Return the effect of an apply."""
        if self.live is None:
            return "create"
        return "change" if self.paths else "unchanged"

    @property
    def namespace(self) -> str | None:
        """Return the namespace, None for an object without one."""
        return self.body["metadata"].get("namespace") if self.kind.namespaced else None

    @property
    def named(self) -> str:
        """Return kind, namespace and name for messages."""
        return f"{self.kind.kind} {_name_of(self.body, namespaced=self.kind.namespaced)}"


def _name_of(obj: Object, *, namespaced: bool = True) -> str:
    meta = obj["metadata"]
    return (
        f"{meta['namespace']}/{meta['name']}" if namespaced and meta.get("namespace") else str(meta["name"])
    )


class Kinds:
    """The kinds of a manifest's objects, read from the API server once for each API version."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._served: dict[str, list[Object]] = {}

    async def of(self, obj: Object) -> Kind:
        """Return the kind of the object. Raises Failure if the API server does not serve it."""
        version = obj["apiVersion"]
        if version not in self._served:
            self._served[version] = await self._resources(version)
        for resource in self._served[version]:
            if resource["kind"] == obj["kind"]:
                group, _, number = version.rpartition("/")
                return Kind(
                    group, number, resource["name"], resource["kind"], namespaced=resource["namespaced"]
                )
        raise Failure(
            f"the API server serves no {obj['kind']} of {version}, which '{obj['metadata']['name']}' is; "
            "is its CRD installed?"
        )

    async def _resources(self, version: str) -> list[Object]:
        url = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            answer = await self._session.client.read(url)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.not_found:
                return []
            raise of(error, f"ask for the resources of {version}") from error
        return [resource for resource in answer.get("resources") or () if "/" not in resource["name"]]


async def plan(session: Session, objects: Sequence[Object], *, force: bool) -> list[Change]:
    """Return the changes that an apply would make, in the order of the apply.

    Raises:
        Failure: The API server would refuse some of the objects; the message names all of them.
    """
    kinds = Kinds(session)
    ordered = sorted(
        objects, key=lambda obj: FIRST.index(obj["kind"]) if obj["kind"] in FIRST else len(FIRST)
    )
    among = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    changes, refused = list[Change](), list[Refused]()
    for obj in ordered:
        try:
            changes.append(await _change(session, await kinds.of(obj), obj, among, force=force))
        except Failure as failure:
            # Without an API server, every other request fails, too.
            if failure.exit_code == Exit.NO_CLUSTER:
                raise
            refused.append(Refused(obj["kind"], _name_of(obj), failure))
    # Report missing permissions before all other refusals.
    refused.sort(key=lambda entry: entry.failure.exit_code != Exit.FORBIDDEN)
    if refused:
        raise together(refused, f"{len(refused)} objects cannot be written")
    return changes


async def _change(
    session: Session, kind: Kind, body: Object, among: Collection[tuple[str, str]], *, force: bool
) -> Change:
    """Return the change of one object.

    A new object may need a missing object of the same manifest. Its dry run then fails, and the error is ignored.

    Args:
        session: The cluster.
        kind: The kind of the object.
        body: The object in the manifest.
        among: Kind and name of all objects of the manifest.
        force: Whether to take over values of other managers.
    """
    change = await existing(session, kind, body) or Change(kind, body, None)
    if kind == CRDS and change.live is not None:
        _check_stored_versions(body, change.live)
    try:
        applied = await ownership.applied(session, kind, body, force=force, dry_run=True)
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and change.live is None and _missing(error, change) in among:
            return change
        raise _refused(error, change) from error
    return change if change.live is None else replace(change, paths=tuple(differences(applied, change.live)))


def _missing(error: ApiError, change: Change) -> tuple[str, str] | None:
    """Return kind and name of the missing object that the change needs, None if something else is wrong."""
    role = change.body.get("roleRef") or {}
    lacking = (error.details.kind, error.details.name) if error.not_found else None
    if change.namespace and lacking == (NAMESPACES.plural, change.namespace):
        return NAMESPACES.kind, change.namespace
    # The details name a missing role. Their resource is the binding's on Kubernetes 1.36, and another one on 1.26.
    singular = str(role.get("kind", "")).lower()
    if role and lacking in [
        (kind, role.get("name")) for kind in (change.kind.plural, singular, f"{singular}s")
    ]:
        return role.get("kind", ""), role["name"]
    return None


async def existing(session: Session, kind: Kind, body: Object) -> Change | None:
    """Return the object with its live state, None if it does not exist. Raises Failure."""
    change = Change(kind, body, None)
    try:
        return replace(
            change, live=await session.client.get(kind, body["metadata"]["name"], change.namespace)
        )
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.not_found:
            return None
        raise of(error, f"read {change.named}") from error


def _check_stored_versions(body: Object, live: Object) -> None:
    """Raise Failure if the CRD lacks a version of stored objects: they could not be read again."""
    has = {version["name"] for version in body["spec"]["versions"]}
    missing = sorted(set((live.get("status") or {}).get("storedVersions") or ()) - has)
    if missing:
        raise Failure(
            f"CustomResourceDefinition {body['metadata']['name']} of this manifest lacks {', '.join(missing)}, in "
            "which the cluster has stored objects; use the command line of the release that is installed"
        )


def _refused(error: Exception, change: Change) -> Failure:
    if isinstance(error, ApiError) and error.conflict:
        images = any(field.endswith(".image") for field in error.conflicting_fields)
        registry = _other_registry(change) if images else ""
        keeping = (
            f"keep the registry of an image with --registry {shlex.quote(registry)}; " if registry else ""
        )
        return Failure(
            f"{change.named} has values of another field manager: {' '.join(error.message.split())}; {keeping}"
            "--force-conflicts takes them over, and with --dry-run shows what would change",
            Exit.CHANGED,
        )
    if isinstance(error, ApiError) and _missing(error, change) == (NAMESPACES.kind, change.namespace):
        return Failure(
            f"cannot apply {change.named}: there is no namespace {change.namespace}; "
            f"{hint('controller install') if change.namespace == SYSTEM_NAMESPACE else 'create it'} first"
        )
    return of(error, f"apply {change.named}")


def _other_registry(change: Change) -> str:
    """Return the registry of the live images if they differ from the manifest's in the registry only, else nothing.

    --registry keeps no other tag and no other name.
    """
    registries = set[str]()
    live = _images(change.live)
    for container, image in _images(change.body).items():
        kept = live.get(container, image)
        registry, _, name = kept.rpartition("/")
        if name != image.rpartition("/")[2]:
            return ""
        if kept != image:
            registries.add(registry)
    return registries.pop() if len(registries) == 1 else ""


def _images(deployment: Object | None) -> dict[str, str]:
    """Return the images of a Deployment by the names of the containers; empty for other objects."""
    containers = part(deployment or {}, "spec", "template", "spec").get("containers") or ()
    return {str(container.get("name")): str(container.get("image")) for container in containers}


async def apply(
    session: Session, changes: Iterable[Change], *, force: bool, written: Callable[[Change], None]
) -> None:
    """Write the objects that a plan creates or changes.

    Args:
        session: The cluster.
        changes: The plan.
        force: Whether to take over values of other managers.
        written: Called with each change after the API server has accepted it.

    Raises:
        Failure: An object was refused; the message has the number of written objects.
    """
    todo = [change for change in changes if change.state != "unchanged"]
    for number, change in enumerate(todo):
        try:
            if change.live is not None:
                await ownership.transfer(session, change.kind, change.live)
            await ownership.applied(session, change.kind, change.body, force=force)
            written(change)
            if change.kind == CRDS:
                name = change.body["metadata"]["name"]
                await _require(session, CRDS, None, name, _established, SECONDS, "served")
        except (ApiError, Unreachable) as error:
            failure = _refused(error, change)
            raise Failure(
                f"{failure.message} ({number} of {len(todo)} objects were written; run the command again)",
                Exit(failure.exit_code),
            ) from error


async def rolled_out(session: Session, changes: Iterable[Change], seconds: float) -> None:
    """Wait until all Deployments of the plan are available in their new state. Raises Failure after the timeout."""
    for change in changes:
        if change.kind.kind == DEPLOYMENTS.kind:
            name = change.body["metadata"]["name"]
            await _require(session, DEPLOYMENTS, change.namespace, name, _available, seconds, "available")


async def gone(session: Session, kind: Kind, namespace: str | None, name: str, seconds: float) -> None:
    """Wait until the object does not exist. Raises Failure after the timeout."""
    await _require(session, kind, namespace, name, lambda obj: obj is None, seconds, "deleted")


async def _require(
    session: Session,
    kind: Kind,
    namespace: str | None,
    name: str,
    holds: Callable[[Object | None], bool],
    seconds: float,
    state: str,
) -> None:
    """Wait until `holds` is true of the object. `state` is the word for that in the message. Raises Failure."""
    reached, last = await until(session, kind, namespace, name, holds, seconds)
    if not reached:
        raise Failure(f"{_late(kind, namespace, name, state, last)} (waited {seconds:.0f} s)", Exit.TIMEOUT)


async def until(
    session: Session,
    kind: Kind,
    namespace: str | None,
    name: str,
    holds: Callable[[Object | None], bool],
    seconds: float,
) -> tuple[bool, Object | None]:
    """Wait until `holds` is true of the object, at most `seconds`. A missing object is None.

    Returns:
        Whether it became true, and the last state of the object.

    Raises:
        ApiError, Unreachable: The object cannot be listed or watched.
    """
    last: Object | None = None
    selector = {"fieldSelector": f"metadata.name={name}"}
    try:
        async with asyncio.timeout(seconds):
            objects, version = await session.client.list(kind, namespace, selector=selector)
            last = objects[0] if objects else None
            if holds(last):
                return True, last
            watch = session.client.watch(
                kind,
                namespace,
                resource_version=version,
                seconds=int(seconds) + 1,
                silence=seconds + 5,
                selector=selector,
            )
            async for event in watch:
                if event["type"] == "BOOKMARK":
                    continue
                last = None if event["type"] == "DELETED" else event["object"]
                if holds(last):
                    return True, last
    except TimeoutError:
        pass
    return False, last


def _late(kind: Kind, namespace: str | None, name: str, state: str, last: Object | None) -> str:
    """Describe an object that is not in the state, the visible reason, and the command that shows more."""
    look = kubectl(f"describe {kind.kind.lower()} {name}", namespace)
    problem = f"{kind.kind} {f'{namespace}/' if namespace else ''}{name} is not {state}"
    holders = ", ".join(map(str, (last or {}).get("metadata", {}).get("finalizers") or ()))
    if state != "deleted" or not holders:
        return f"{problem}; {look}"
    waits = [
        f"; the process of provider {provider} removes it once it has cleaned up: "
        f"{kubectl(f'get deployment kubefoundry-provider-{provider}', SYSTEM_NAMESPACE)}"
        for provider in (_provider_of(holder) for holder in holders.split(", "))
        if provider
    ]
    return f"{problem}: held by finalizer {holders}{''.join(waits) or f'; {look}'}"


def _provider_of(finalizer: str) -> str | None:
    """Return the provider that the finalizer belongs to, None if it is not a provider's."""
    name = finalizer.removeprefix(PREFIX).removesuffix("-provider")
    return name if finalizer == provider_finalizer(name) else None


def _established(crd: Object | None) -> bool:
    condition = find(((crd or {}).get("status") or {}).get("conditions"), "Established") or {}
    return condition.get("status") == "True"


def _available(deployment: Object | None) -> bool:
    status = (deployment or {}).get("status") or {}
    if deployment is None or status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return False
    desired = deployment["spec"].get("replicas", 1)
    return bool(status.get("updatedReplicas", 0) >= desired and status.get("availableReplicas", 0) >= desired)
