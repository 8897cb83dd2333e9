"""Requests to a model's endpoint by way of the API server's proxy: no port-forward, no Ingress."""

from __future__ import annotations

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.model import endpoint, summary
from kubefoundry_cli.output import clean
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.errors import ApiError


async def proxy(session: Session, name: str) -> tuple[Object, str]:
    """The model, and the path of its endpoint on the API server. Raises Failure where none is published."""
    obj = await session.model(name)
    where = endpoint(obj.get("status") or {})
    if where is None:
        raise Failure(
            f"ModelDeployment '{name}' has no endpoint yet ({summary(obj)}); kubefoundry wait {name}"
        )
    return obj, f"/api/v1/namespaces/{obj['metadata']['namespace']}/services/{where}/proxy"


def refused(error: ApiError, name: str) -> Failure:
    """What an answer of the proxy or of the model means."""
    if error.code == 403 and "services/proxy" in error.message:
        return Failure(f"cannot reach ModelDeployment '{name}': {error.message}", Exit.FORBIDDEN)
    if error.code in (502, 503):
        return Failure(
            f"ModelDeployment '{name}' does not answer: {clean(error.message)}; kubefoundry status {name}"
        )
    return Failure(f"ModelDeployment '{name}' answered {error.code}: {clean(error.message)}")
