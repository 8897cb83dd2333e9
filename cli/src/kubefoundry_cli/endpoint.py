"""Send requests to a model's endpoint through the API server's proxy: no port-forward, no Ingress."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.health import endpoint, health_of, summary
from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import clean, say
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import NO_REASON, ApiError, Unreachable


async def proxy(session: Session, name: str) -> tuple[Object, str]:
    """Return the model, and the path of its endpoint on the API server. Raises Failure if none is published."""
    obj = await session.model(name)
    where = endpoint(obj.get("status") or {})
    if where is None:
        raise Failure(f"ModelDeployment '{name}' has no endpoint yet ({summary(obj)}); {_remedy(obj)}")
    if "://" in where:
        raise Failure(
            f"ModelDeployment '{name}' answers at {clean(where)}, which the API server cannot reach for you: "
            "ask it there"
        )
    return obj, f"/api/v1/namespaces/{obj['metadata']['namespace']}/services/{where}/proxy"


def _remedy(obj: Object) -> str:
    """Return how to get an endpoint. To wait is no remedy for a model that does not become ready by itself."""
    health = health_of(obj)
    needs_change = health.final or health.state == "ScaledToZero"
    return (health.remedy if needs_change else "") or hint(f"wait {health.name}")


def refused(error: ApiError, name: str) -> Failure:
    """Return the failure for an error of the proxy or of the model."""
    by_server = error.reason != NO_REASON
    if error.code == 403 and by_server:
        return of(error, f"reach ModelDeployment '{name}'")
    if error.code in (502, 503) or by_server:
        return Failure(
            f"ModelDeployment '{name}' does not answer: {clean(error.message)}; {hint(f'status {name}')}"
        )
    return Failure(f"ModelDeployment '{name}' answered {error.code}: {clean(error.message)}")


async def answer(
    session: Session, name: str, messages: Sequence[Mapping[str, str]], most: int | None
) -> AsyncIterator[str]:
    """Yield the model's answer in pieces while it is generated.

    Args:
        session: The cluster.
        name: The model's name.
        messages: The conversation in the format of the OpenAI API.
        most: Limit of tokens, None for the model's own limit.

    Raises:
        Failure: The model cannot be reached, or refuses the request.
    """
    # Imported here: it loads pydantic, which most commands do not need.
    from kubefoundry_sdk._runtime.tenant_http import LIMIT

    _, url = await proxy(session, name)
    try:
        listed = await session.client.read(f"{url}/v1/models", most=LIMIT)
        body: dict[str, Any] = {"model": served(listed, name), "messages": [*messages], "stream": True}
        if most is not None:
            body["max_tokens"] = most
        async for line in session.client.lines(f"{url}/v1/chat/completions", body):
            yield _token(line)
    except ApiError as error:
        raise refused(error, name) from error
    except Unreachable as error:
        raise of(error, f"chat with '{name}'") from error


def served(listed: Any, name: str) -> str:
    """Return the id under which the endpoint serves the model. Raises Failure if the endpoint serves none."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    ids = [entry.get("id") for entry in entries or () if isinstance(entry, dict)]
    if not ids or not isinstance(ids[0], str):
        raise Failure(f"the endpoint of '{name}' lists no model; is it an OpenAI-compatible server?")
    return ids[0]


def _token(line: bytes) -> str:
    """Return the text of one server-sent event, empty if it has none."""
    text = line.decode(errors="replace").removeprefix("data:").strip()
    if not line.startswith(b"data:") or text == "[DONE]":
        return ""
    try:
        choice = json.loads(text)["choices"][0]
        return str(choice.get("delta", {}).get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        say(f"cannot read part of the answer: {text[:200]}")
        return ""
