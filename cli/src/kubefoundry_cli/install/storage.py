"""Move the stored objects of our CRDs to another version of the API, as Cluster API's migrator does.

The versions have the same fields, so a request that changes nothing is enough: the API server writes the object again
if it is stored in another version. The request goes to the status subresource, where no webhook of ours is asked.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubefoundry_cli.cluster import MANAGER, Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CRDS, LEASES, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

OURS: Final = (MODEL_DEPLOYMENTS, PROVIDER_CONFIGS)
VERSIONS: Final = (names.VERSION, names.NEWEST_VERSION)
SECONDS: Final = 60.0
"""Seconds to wait until the API server stores objects in the version of the changed CRD."""

POLL: Final = 0.2
"""Seconds between two looks at the discovery document, which cannot be watched."""

SETTLE: Final = 10.0
"""Seconds for the other API servers to learn of the changed CRD. They watch it, which takes milliseconds, but only
the one that answers can be asked."""

API_SERVERS: Final = {"labelSelector": "apiserver.kubernetes.io/identity=kube-apiserver"}
"""Selects the Leases of the API servers, one for each machine. Kubernetes 1.26 has another label."""

REPORTED: Final = 100
"""Number of moved objects after which the progress is reported."""


def stored_in(definitions: Sequence[Object], versions: Mapping[str, str]) -> list[Object]:
    """Return the CRDs with these storage versions, by the name of the CRD. A CRD without the version is unchanged."""
    return [_stored_in(crd, versions.get(crd["metadata"]["name"], "")) for crd in definitions]


def _stored_in(crd: Object, version: str) -> Object:
    served = crd["spec"]["versions"]
    if version not in [each["name"] for each in served]:
        return crd
    changed = [{**each, "storage": each["name"] == version} for each in served]
    return {**crd, "spec": {**crd["spec"], "versions": changed}}


def planned(installed: Mapping[str, Object], new_crds: Sequence[Object]) -> dict[str, Object]:
    """Return the installed CRDs as they would be with the specs of `new_crds`."""
    specs = {crd["metadata"]["name"]: crd["spec"] for crd in new_crds}
    return {name: {**crd, "spec": specs[name]} for name, crd in installed.items()}


def storage_version(crd: Object) -> str:
    """Return the version in which the API server stores new objects of the live CRD; empty if none is marked."""
    marked = (each["name"] for each in crd["spec"]["versions"] if each.get("storage"))
    return str(next(marked, ""))


def outdated(crd: Object) -> list[str]:
    """Return the versions of the live CRD in which objects may be stored, besides its storage version."""
    stored = (crd.get("status") or {}).get("storedVersions") or []
    return sorted(str(version) for version in stored if version != storage_version(crd))


async def live(session: Session) -> dict[str, Object]:
    """Return our installed CRDs by name. Raises Failure if the API server refuses to show them."""
    installed = {}
    for kind in OURS:
        try:
            installed[kind.crd] = await session.client.get(CRDS, kind.crd)
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.not_found):
                raise of(error, f"read CustomResourceDefinition {kind.crd}") from error
    return installed


async def move(session: Session, kind: Kind, crd: Object, report: Callable[[str], None]) -> int:
    """Store all objects of the kind in the storage version of its CRD, and return the number of objects.

    Afterwards the CRD's status names only that version. Can be interrupted and repeated.

    Args:
        session: The cluster.
        kind: The kind.
        crd: Its live CRD.
        report: Called with a line of progress.

    Raises:
        Failure: An object cannot be written, or the CRD was changed meanwhile.
    """
    version = storage_version(crd)
    await _until_stores(session, kind, version)
    await _until_others_store(session, kind, version, report)
    number = 0
    try:
        async for page, _ in session.client.pages(kind):
            for obj in page:
                number += await _rewrite(session, kind, obj["metadata"])
                if number and number % REPORTED == 0:
                    report(f"{kind.kind}: {number} objects moved to {version}")
    except (ApiError, Unreachable) as error:
        raise of(error, f"list {kind.plural}") from error
    await _trim(session, kind, crd)
    return number


async def _rewrite(session: Session, kind: Kind, meta: Object) -> bool:
    """Send a patch without a change. Return False if the object is gone."""
    name, namespace = meta["name"], meta.get("namespace")
    try:
        await session.client.json_patch(kind, name, namespace, [], manager=MANAGER, subresource="/status")
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.not_found:
            return False
        where = f" in namespace {namespace}" if namespace else ""
        raise _interrupted(error, f"move {kind.kind} '{name}'{where}") from error
    return True


async def _until_stores(session: Session, kind: Kind, version: str) -> None:
    """Wait until the API server stores in the version: its discovery document has a hash of it."""
    name = f"{kind.group}/{version}/{kind.kind}"
    expected = base64.b64encode(hashlib.sha256(name.encode()).digest()[:8]).decode()
    try:
        for _ in range(round(SECONDS / POLL)):
            if expected in await _hashes(session, kind):
                return
            await asyncio.sleep(POLL)
    except (ApiError, Unreachable) as error:
        raise of(error, f"read the discovery document of {kind.api_version}") from error
    raise Failure(
        f"the API server does not store {kind.plural} in {version} after {SECONDS:.0f} s; "
        f"{hint('controller migrate')} then continues",
        Exit.TIMEOUT,
    )


async def _until_others_store(
    session: Session, kind: Kind, version: str, report: Callable[[str], None]
) -> None:
    """Wait for other API servers, unless there are none: one could still store an object in the old version."""
    try:
        leases, _ = await session.client.list(LEASES, "kube-system", selector=API_SERVERS)
    except (ApiError, Unreachable):
        leases = []  # Their number is unknown.
    if len(leases) != 1:
        report(
            f"{kind.kind}: the API server that answers stores in {version}; waiting {SETTLE:.0f} s for others, which "
            "cannot be asked"
        )
        await asyncio.sleep(SETTLE)


async def _hashes(session: Session, kind: Kind) -> list[str]:
    document = await session.client.read(f"/apis/{kind.api_version}")
    resources = document.get("resources") or []
    return [str(each.get("storageVersionHash")) for each in resources if each.get("name") == kind.plural]


async def _trim(session: Session, kind: Kind, crd: Object) -> None:
    """Remove the other versions from the CRD's status, unless its spec was changed since `crd` was read."""
    operations = [
        {"op": "test", "path": "/metadata/generation", "value": crd["metadata"]["generation"]},
        {"op": "replace", "path": "/status/storedVersions", "value": [storage_version(crd)]},
    ]
    try:
        await session.client.json_patch(
            CRDS, kind.crd, None, operations, manager=MANAGER, subresource="/status"
        )
    except (ApiError, Unreachable) as error:
        raise _interrupted(error, f"update the status of CustomResourceDefinition {kind.crd}") from error


def _interrupted(error: ApiError | Unreachable, doing: str) -> Failure:
    """Return the failure of a move that the same command continues."""
    failure = of(error, doing)
    repair = "repair the object; " if isinstance(error, ApiError) and error.code == 422 else ""
    return Failure(
        f"{failure.message}; {repair}{hint('controller migrate')} then continues", Exit(failure.exit_code)
    )
