"""Collect the state of an installation for a maintainer, as one file: objects, versions, Events, logs; no secrets."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.pods import NotToBeFound, of_model, serving_object, serving_provider
from kubefoundry_cli.providers import installed
from kubefoundry_cli.redaction import redacted, scrubbed
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import (
    CORE_EVENTS,
    CRDS,
    DEPLOYMENTS,
    HELPER_KINDS,
    LEASES,
    MODEL_DEPLOYMENTS,
    PODS,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.write.helpers import whole

QUOTAS: Final = Kind("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES: Final = Kind("", "v1", "limitranges", "LimitRange")
NODES: Final = Kind("", "v1", "nodes", "Node", namespaced=False)

HELPERS: Final = {"labelSelector": f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}"}

LINES: Final = 2000
"""Number of lines from the end of each pod's log."""

LONGEST: Final = 4096
"""Characters of a log line."""


async def collected(session: Session, namespace: str | None, findings: list[Object]) -> dict[str, bytes]:
    """Return the content of the bundle by file name.

    A failed read, for example because of a missing permission, is an entry in `missing.json`.

    Args:
        session: The cluster.
        namespace: The namespace of the models; None for all.
        findings: The findings of `doctor`.
    """
    files: dict[str, Any] = {
        "doctor": [_finding(finding) for finding in findings],
    }
    missing = []
    try:
        files["versions"] = await _versions(session)
    except (ApiError, Unreachable) as error:
        missing.append(of(error, "read the server's version").message)
    for name, kind, where in (
        ("components", DEPLOYMENTS, names.SYSTEM_NAMESPACE),
        ("pods", PODS, names.SYSTEM_NAMESPACE),
        ("leases", LEASES, names.SYSTEM_NAMESPACE),
        ("system-events", CORE_EVENTS, names.SYSTEM_NAMESPACE),
        ("providers", PROVIDER_CONFIGS, None),
        ("models", MODEL_DEPLOYMENTS, namespace),
        ("model-events", CORE_EVENTS, namespace),
        ("quotas", QUOTAS, namespace),
        ("limit-ranges", LIMIT_RANGES, namespace),
        ("nodes", NODES, None),
    ):
        try:
            objects, _ = await session.client.list(kind, where)
            files[name] = [redacted(obj) for obj in objects]
        except (ApiError, Unreachable) as error:
            missing.append(of(error, f"list {kind.plural}").message)
    files |= await _of_models(session, files.get("models", []), namespace, missing)
    async for name, crd in _crds(session, files, missing):
        files[f"crds/{name}"] = crd
    content = {f"{name}.json": _json(value) for name, value in files.items()}
    content |= await _logs(session, files.get("pods", ()), missing)
    content["missing.json"] = _json([scrubbed(reason) for reason in missing])
    return content


async def _logs(session: Session, pods: Sequence[Object], missing: list[str]) -> dict[str, bytes]:
    content = {}
    for pod in pods:
        name = pod["metadata"]["name"]
        try:
            content[f"logs/{name}.txt"] = await _log(session, name)
        except (ApiError, Unreachable) as error:
            missing.append(of(error, f"read the log of pod '{name}'").message)
    return content


def writable(path: str) -> None:
    """Raise Failure if the file cannot be written, before its content is collected."""
    folder = Path(path).absolute().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "it is a folder" if Path(path).is_dir() else f"{folder} is not a folder that can be written to"
        raise Failure(f"cannot write {path}: {why}", Exit.USAGE)


def write(path: str, content: dict[str, bytes]) -> None:
    """Write a tar.gz, as a whole or not at all. Raises Failure."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(f"kubefoundry/{name}")
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    unfinished = Path(f"{path}.{os.getpid()}")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(packed.getvalue())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise Failure(f"cannot write {path}: {error.strerror}", Exit.USAGE) from error


def _finding(finding: Object) -> Object:
    return {"state": finding["state"], "text": scrubbed(finding["text"])}


async def _versions(session: Session) -> Object:
    server = await session.client.read("/version")
    packages = {name: package.version for name, package in installed().items()}
    return {
        "kubernetes": str(server.get("gitVersion")),
        "cli": version("kubefoundry-cli"),
        "sdk": version("kubefoundry-sdk"),
        "providers": packages,
    }


async def _of_models(
    session: Session, models: Sequence[Object], namespace: str | None, missing: list[str]
) -> dict[str, list[Object]]:
    """Return the upstream objects of the models with their helpers, and their pods.

    The pods are those of the upstream objects, and those with the model label. `models` are redacted already.
    """
    upstream: dict[str, list[Object]] = {}
    pods: dict[str, Object] = {}
    for model in models:
        meta = model["metadata"]
        try:
            if upstream_object := await upstream_of(session, model):
                kind, live = upstream_object
                upstream.setdefault(f"upstream/{kind.plural}", []).append(redacted(live))
            for pod in await of_model(session, model):
                pods[pod["metadata"]["uid"]] = redacted(pod)
        except NotToBeFound as error:
            missing.append(f"pods of model {meta['namespace']}/{meta['name']}: {error}")
        except (ApiError, Unreachable) as error:
            missing.append(
                of(error, f"read what model {meta['namespace']}/{meta['name']} has upstream").message
            )
    try:
        labelled, _ = await session.client.list(
            PODS, namespace, selector={"labelSelector": names.MODEL_LABEL}
        )
        pods |= {pod["metadata"]["uid"]: redacted(pod) for pod in labelled}
    except (ApiError, Unreachable) as error:
        missing.append(of(error, "list pods").message)
    upstream |= await _helpers(session, namespace, missing)
    return {**upstream, "model-pods": [*pods.values()]}


async def _helpers(session: Session, namespace: str | None, missing: list[str]) -> dict[str, list[Object]]:
    by_kind = {}
    for kind in HELPER_KINDS.values():
        try:
            helpers, _ = await session.client.list(kind, namespace, selector=HELPERS)
            by_kind[f"upstream/{kind.plural}"] = [redacted(whole(kind, helper)) for helper in helpers]
        except (ApiError, Unreachable) as error:
            missing.append(of(error, f"list {kind.plural}").message)
    return by_kind


async def upstream_of(session: Session, model: Object) -> tuple[Kind, Object] | None:
    """Return the upstream object that the model's status names, None without one. Raises ApiError, Unreachable."""
    packages = installed()
    package = packages.get(serving_provider(model, packages) or "")
    reference = serving_object(model, package) if package else None
    if reference is None:
        return None
    kind, name = reference
    return kind, await session.client.get(kind, name, model["metadata"]["namespace"])


async def _crds(
    session: Session, files: Mapping[str, Any], missing: list[str]
) -> AsyncIterator[tuple[str, Object]]:
    """Yield our CRDs and those of the registered providers: redacted metadata and status, and each version."""
    registered = {config["metadata"]["name"] for config in files.get("providers", ())}
    crd_names = [MODEL_DEPLOYMENTS.crd, PROVIDER_CONFIGS.crd]
    crd_names += [
        package.upstream.crd
        for name, package in installed().items()
        if package.upstream.version is None and name in registered
    ]
    for name in crd_names:
        try:
            crd = await session.client.get(CRDS, name)
        except (ApiError, Unreachable) as error:
            missing.append(of(error, f"read CRD {name}").message)
            continue
        yield (
            name,
            {"metadata": redacted(crd)["metadata"], "status": redacted(crd).get("status"), **_served(crd)},
        )


def _served(crd: Object) -> Object:
    keys = ("name", "served", "storage", "schema")
    return {
        "versions": [{key: crd_version.get(key) for key in keys} for crd_version in crd["spec"]["versions"]]
    }


async def _log(session: Session, pod: str) -> bytes:
    kind: Kind = PODS
    url = f"/api/{kind.version}/namespaces/{names.SYSTEM_NAMESPACE}/pods/{pod}/log?tailLines={LINES}"
    lines = [scrubbed(line.decode(errors="replace")[:LONGEST]) async for line in session.client.lines(url)]
    return "".join(lines).encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode(errors="replace")
