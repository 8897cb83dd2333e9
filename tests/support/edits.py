"""An administrator's edits of upstream objects, and checks of the provider's reaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.kinds import UPSTREAM
from support.metrics import sample, until_scraped
from support.waiting import serves, until, until_deployment

ADMIN = "kubectl-edit"


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of an owned value: its path, the admin's value, and the field's name in the Event."""

    provider: str
    spec: dict[str, Any]
    path: tuple[str | int, ...]
    value: Any
    field: str

    @property
    def pointer(self) -> str:
        """Return the path as a JSON pointer."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)

    def read(self, obj: Object | None) -> Any:
        """Return the value in an object, or None if a part of the path is missing."""
        value: Any = obj
        for part in self.path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value


EDITS = {
    "kaito count": Edit("kaito", GPU, ("resource", "count"), 7, "resource.count"),
    "kaito image": Edit(
        "kaito",
        CPU,
        ("inference", "template", "spec", "containers", 0, "image"),
        "example.com/other:1",
        "inference.template.spec.containers",
    ),
    "kaito label": Edit(
        "kaito",
        GPU,
        ("metadata", "labels", names.MANAGED_BY_LABEL),
        "me",
        f"metadata.labels.{names.MANAGED_BY_LABEL}",
    ),
    "dynamo replicas": Edit(
        "dynamo", GPU, ("spec", "services", "VllmWorker", "replicas"), 5, "spec.services.VllmWorker.replicas"
    ),
    "dynamo arguments": Edit(
        "dynamo",
        GPU,
        ("spec", "services", "VllmWorker", "extraPodSpec", "mainContainer", "args"),
        ["--model", "org/other"],
        "spec.services.VllmWorker.extraPodSpec.mainContainer.args",
    ),
    "dynamo owner mark": Edit(
        "dynamo",
        GPU,
        ("metadata", "annotations", names.OWNER_UID_ANNOTATION),
        "somebody",
        f"metadata.annotations.{names.OWNER_UID_ANNOTATION}",
    ),
    "kuberay application": Edit(
        "kuberay", GPU, ("spec", "serveConfigV2"), "applications: []", "spec.serveConfigV2"
    ),
    "kuberay worker group": Edit(
        "kuberay",
        GPU,
        ("spec", "rayClusterConfig", "workerGroupSpecs", 0, "groupName"),
        "others",
        "spec.rayClusterConfig.workerGroupSpecs",
    ),
}


async def create_model(
    api: Client, namespace: str, spec: dict[str, Any], provider: str | None, name: str = "m"
) -> Object:
    """Create a ModelDeployment that names the provider, and return it."""
    body = model_deployment(name, namespace, spec, provider=provider)
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def running(
    api: Client, namespace: str, spec: dict[str, Any], provider: str | None, name: str = "m"
) -> Object:
    """Create a ModelDeployment, and return it once it is Running."""
    await create_model(api, namespace, spec, provider, name)
    return await until_deployment(api, name, namespace, serves)


async def nothing_more_is_done(
    suite: Suite, api: Client, namespace: str, provider: str, later: str = "later"
) -> None:
    """Touch upstream object `m` several times, and assert that the provider does not write to it.

    The provider has received all changes once a ModelDeployment that is created afterwards, `later`, runs. It has
    reconciled them once nothing is pending after that.
    """
    kind = UPSTREAM[provider]
    log = AuditLog(suite)
    for count in range(5):
        touch = [{"op": "add", "path": "/metadata/annotations/example.com~1touched", "value": str(count)}]
        await api.json_patch(kind, "m", namespace, touch, manager=ADMIN)
    await running(api, namespace, GPU, provider, later)
    await until_scraped(
        suite.components[provider],
        lambda series: sample(series, "kubefoundry_reconciliations_pending", provider=provider) == 0,
    )
    written = log.writes(f"provider-{provider}", namespace, kind.plural)
    assert [entry for entry in written if f"{kind.plural}/m?" in entry] == []


async def until_upstream(api: Client, kind: Kind, namespace: str, holds: Callable[[Object], bool]) -> Object:
    """Return upstream object `m` once `holds` is true of it."""
    obj = await until(api, kind, "m", namespace, lambda obj: obj is not None and holds(obj))
    assert obj is not None
    return obj
