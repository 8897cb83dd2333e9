"""Resolves ModelDeployments to base URLs, latched once the server is deployed with them.

A change of the ModelDeployment's readiness alone never replaces a pod. Only another endpoint that is ready
does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubefoundry_llamastack.api.spec import ModelDeploymentRef
from kubefoundry_llamastack.reasons import MODELS_RESOLVED, condition
from kubefoundry_sdk._api.conditions import Condition, is_true
from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class Resolved:
    """One resolved reference to a ModelDeployment.

    Attributes:
        name: The ModelDeployment's name.
        provider_id: Its provider id in the server.
        url: The base URL to use, None while there is none.
        ready: Whether the model is served now.
        reason: Reason of the condition.
        message: Why it is not ready, empty if it is.
    """

    name: str
    provider_id: str
    url: str | None
    ready: bool
    reason: str
    message: str

    @property
    def row(self) -> Object:
        """Return its row in the status, without the transition time."""
        row: Object = {"name": self.name, "providerId": self.provider_id, "ready": self.ready}
        if self.url:
            row["endpoint"] = self.url
        return {**row, "message": self.message} if self.message else row


def resolve(
    references: list[ModelDeploymentRef],
    namespace: str,
    lookup: Callable[[str], Object | None] | None,
    latched: Mapping[str, str],
) -> list[Resolved]:
    """Resolve the references of a CR.

    Args:
        references: The CR's references.
        namespace: The CR's namespace.
        lookup: Returns the ModelDeployment of a name. None while ModelDeployments are unreadable.
        latched: Base URLs in the Deployment, by provider id.

    Returns:
        One item for each reference.
    """
    return [_resolve(item, namespace, lookup, latched.get(item.id)) for item in references]


def _resolve(
    item: ModelDeploymentRef,
    namespace: str,
    lookup: Callable[[str], Object | None] | None,
    latched: str | None,
) -> Resolved:
    reason, message, url = _look(item.name, namespace, lookup)
    if url is not None:
        return Resolved(item.name, item.id, url, True, "Resolved", "")
    if latched is None:
        return Resolved(item.name, item.id, None, False, reason, message)
    return Resolved(
        item.name,
        item.id,
        latched,
        False,
        "HoldingLastEndpoint",
        f"{message}; the server keeps its last endpoint {latched}",
    )


def _look(
    name: str, namespace: str, lookup: Callable[[str], Object | None] | None
) -> tuple[str, str, str | None]:
    if lookup is None:
        text = (
            "ModelDeployments are not installed, or the operator may not read them; install KubeFoundry's CRDs and "
            "the ClusterRole kubefoundry-llamastack-modeldeployments"
        )
        return "CRDNotInstalled", text, None
    deployment = lookup(name)
    if deployment is None:
        text = f"ModelDeployment '{name}' does not exist in namespace '{namespace}'; create it or correct the name"
        return "NotFound", text, None
    status = deployment.get("status") or {}
    if deployment["metadata"].get("deletionTimestamp") or not is_true(status.get("conditions"), "Ready"):
        detail = f": {status['message']}" if status.get("message") else ""
        return "NotReady", f"ModelDeployment '{name}' is not ready{detail}", None
    if (url := _url(status.get("endpoint") or {}, namespace)) is not None:
        return "Resolved", "", f"{url}/v1"
    return "NoEndpoint", f"ModelDeployment '{name}' is ready but publishes no endpoint", None


def _url(endpoint: Object, namespace: str) -> str | None:
    if endpoint.get("url"):
        return str(endpoint["url"].rstrip("/"))
    if not (endpoint.get("service") and endpoint.get("port")):
        return None
    return f"http://{endpoint['service']}.{namespace}.svc:{endpoint['port']}"


def endpoints(resolved: list[Resolved]) -> dict[str, str] | None:
    """Return base URLs by provider id, or None while one is missing."""
    urls = {item.provider_id: item.url for item in resolved if item.url}
    return urls if len(urls) == len(resolved) else None


def summary(resolved: list[Resolved], generation: int) -> Condition | None:
    """Return the condition for all of them, about the first that is not resolved. None without references."""
    if not resolved:
        return None
    worst = min(resolved, key=lambda item: (item.url is not None, item.ready))
    if worst.url is not None and worst.ready:
        text = f"{len(resolved)} of {len(resolved)} ModelDeployments are ready"
        return condition(MODELS_RESOLVED, True, "Resolved", text, generation=generation)
    others = [item.message for item in resolved if item is not worst and not item.ready]
    return condition(
        MODELS_RESOLVED,
        False,
        worst.reason,
        "; ".join([worst.message, *others]),
        generation=generation,
    )
