"""Send requests to a model's endpoint through the API server's proxy: no port-forward, no Ingress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.health import endpoint, health_of, summary
from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import clean
from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError, Compressed, Silent, TooLong, Unreachable
from kubefoundry_sdk._cluster.service_proxy import Refused, Reply, ServiceProxy, status_text
from kubefoundry_sdk._cluster.transport import DEADLINE

WORDS: Final = 500
"""Characters of a model's error that are shown."""

ANSWER: Final = 16 * 2**20
"""Bytes of an answer that are read: the page holds an answer in memory."""

LONGEST: Final = 3600.0
"""Seconds that an answer may take. A model that sends a byte now and then would occupy the page forever."""


async def proxy(session: Session, name: str) -> ServiceProxy:
    """Return the model's endpoint on the API server. Raises Failure if none is published."""
    obj = await session.model(name)
    where = endpoint(obj.get("status") or {})
    if where is None:
        raise Failure(f"ModelDeployment '{name}' has no endpoint yet ({summary(obj)}); {_remedy(obj)}")
    if "://" in where:
        raise Failure(
            f"ModelDeployment '{name}' answers at {clean(where)}, which the API server cannot reach for you: "
            "ask it there"
        )
    return ServiceProxy(session.client, obj["metadata"]["namespace"], where)


def _remedy(obj: Object) -> str:
    """Return how to get an endpoint. To wait is no remedy for a model that does not become ready by itself."""
    health = health_of(obj)
    needs_change = health.final or health.state == "ScaledToZero"
    return (health.remedy if needs_change else "") or hint(f"wait {health.name}")


async def refused(service: ServiceProxy, reply: Reply, name: str, *, posts: bool) -> Failure:
    """Return the failure for a response other than 2xx, of the API server or of the model.

    Args:
        service: The model's endpoint.
        reply: The response.
        name: The model's name.
        posts: Whether the request was a POST.
    """
    try:
        refusal = await service.refuses(reply, posts=posts)
    except (ApiError, Unreachable) as error:
        return of(error, f"reach ModelDeployment '{name}'")
    if refusal:
        return of(refusal, f"reach ModelDeployment '{name}'")
    if reply.status < 400:
        return Failure(
            f"ModelDeployment '{name}' answered {status_text(reply.status)}, which is not followed"
        )
    words = clean(_words(reply.body))
    # With 404 and a Status, the API server has not found the Service.
    if reply.status in (502, 503) or (reply.status == 404 and _is_status(reply.body)):
        return Failure(f"ModelDeployment '{name}' does not answer: {words}; {hint(f'status {name}')}")
    return Failure(f"ModelDeployment '{name}' answered {reply.status}: {words}")


def unusable(error: Unreachable, doing: str) -> Failure:
    """Return the failure for a request without a usable response. `doing` as in `failure.of`."""
    if isinstance(error, Compressed | Silent | TooLong):
        # Either the model or the API server: do not blame the API server.
        return Failure(f"cannot {doing}: {error}")
    return of(error, doing)


def _is_status(body: bytearray) -> bool:
    content = _decoded(body)
    return isinstance(content, dict) and content.get("kind") == "Status"


def _words(body: bytearray) -> str:
    """Return the text of an error, which the model or the API server's proxy wrote."""
    content = _decoded(body)
    if isinstance(content, dict) and isinstance(content.get("message"), str):
        return str(content["message"])[:WORDS]
    return body[: 4 * WORDS].decode(errors="replace")[:WORDS]


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
    service = await proxy(session, name)
    try:
        reply = await service.exchange("/v1/models", seconds=DEADLINE)
        if reply.status != 200:
            raise await refused(service, reply, name, posts=False)
        body: dict[str, Any] = {
            "model": served(_decoded(reply.body), name),
            "messages": [*messages],
            "stream": True,
        }
        if most is not None:
            body["max_tokens"] = most
        size = 0
        async for line in service.lines("/v1/chat/completions", body, seconds=LONGEST):
            size += len(line)
            if size > ANSWER:
                raise Failure(f"the answer of '{name}' is longer than {ANSWER // 2**20} MiB; it was cut off")
            yield _token(line, name)
    except Refused as error:
        raise await refused(service, error.reply, name, posts=True) from error
    except Unreachable as error:
        raise unusable(error, f"chat with '{name}'") from error


def _decoded(body: bytearray) -> Any:
    """Return the content of a JSON body, None if it is not JSON."""
    try:
        return decode(body)
    except Unreadable:
        return None


def served(listed: Any, name: str) -> str:
    """Return the id under which the endpoint serves the model. Raises Failure if the endpoint serves none."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    ids = [entry.get("id") for entry in entries or () if isinstance(entry, dict)]
    if not ids or not isinstance(ids[0], str):
        raise Failure(f"the endpoint of '{name}' lists no model; is it an OpenAI-compatible server?")
    return ids[0]


def _token(line: bytes, name: str) -> str:
    """Return the text of one server-sent event, empty if it has none. Raise Failure if it is not of a chat."""
    text = line.removeprefix(b"data:").strip()
    if not line.startswith(b"data:") or text == b"[DONE]":
        return ""
    try:
        choices = decode(text)["choices"]
        # An event with figures about the answer has no choices.
        content = choices[0].get("delta", {}).get("content") if choices else None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        words = clean(text[:200].decode(errors="replace"))
        raise Failure(f"the answer of '{name}' has a part that is not of a chat: {words}") from error
    return content if isinstance(content, str) else ""
