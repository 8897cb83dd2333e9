"""Encodes the operator's input to a command: JSON in base64, so that no shell and no kubelet interprets it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from llamastack_providers import apis, layout, service
from llamastack_providers.errors import Code, Failure
from llamastack_providers.service import Service
from llamastack_providers.summary import Origin

CHUNK: Final = 100_000
"""Linux accepts at most 131,072 bytes in one argument (MAX_ARG_STRLEN)."""

PROVIDER_SECONDS: Final = 60
"""Seconds that a provider has to load by default."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Provider:
    """One entry of `spec.server.externalProviders`.

    Attributes:
        api: Its section's key.
        order: Its position among all, from 0.
        config: Its configuration, None if the user gave none.
        service: Its service, None if it has none.
    """

    provider_id: str
    image: str
    api: str
    order: int
    config: Json | None = None
    service: Service | None = None


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A ModelDeployment as a provider.

    Attributes:
        url_variable: The environment variable with its address.
    """

    provider_id: str
    url_variable: str
    config: Json


@dataclass(frozen=True, slots=True)
class Merge:
    """The input of `merge-config`.

    Attributes:
        expected: Image by provider id, for all that should be installed.
        base: Name of the base configuration in messages.
        services: Service by provider id, for the providers that have one.
    """

    expected: Mapping[str, str]
    model_endpoints: tuple[ModelEndpoint, ...]
    base: str
    services: Mapping[str, Service] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preflight:
    """The input of `preflight`.

    Attributes:
        seconds: Seconds for each provider to load.
        secret: Variables whose values come from a Secret or ConfigMap.
        unknown: Why there may be secrets in other places. Empty if there are none.
        services: Service by provider id, for the providers that have one.
    """

    seconds: int
    secret: tuple[str, ...]
    unknown: str
    services: Mapping[str, Service] = field(default_factory=dict)


def encode(request: Mapping[str, Any]) -> list[str]:
    """Return the arguments after `--input`."""
    text = base64.b64encode(json.dumps(request, ensure_ascii=False).encode()).decode()
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


def decode(chunks: Sequence[str]) -> Json:
    """Return the input of `encode`.

    Raises:
        Failure: BadCall.
    """
    try:
        value = json.loads(base64.b64decode("".join(chunks), validate=True))
    except (binascii.Error, ValueError) as error:
        raise Failure(Code.BadCall, f"--input is not JSON in base64: {error}") from None
    if not isinstance(value, dict):
        raise Failure(Code.BadCall, "--input is not a JSON object")
    return value


def origin(value: Json, *, init: bool) -> Origin:
    """Return the provider and image of the call.

    Args:
        value: The decoded input.
        init: Whether the call is made in an init container.

    Raises:
        Failure: BadCall.
    """
    return Origin(str(value.get("providerId", "")), _text(value, "image"), _text(value, "container"), init)


def provider(value: Json) -> Provider:
    """Return the request of `install`.

    Raises:
        Failure: BadCall.
    """
    api, order, config = _text(value, "api"), value.get("order"), value.get("config")
    if apis.run_name(api) is None:
        raise Failure(Code.BadCall, f"unknown api {api!r}")
    if not isinstance(order, int) or isinstance(order, bool) or order < 0:
        raise Failure(Code.BadCall, f"order must be a number from 0, not {order!r}")
    if config is not None and not isinstance(config, dict):
        raise Failure(Code.BadCall, "config must be an object")
    provider_id = _text(value, "providerId")
    if provider_id in (".", "..") or "/" in provider_id:
        raise Failure(Code.BadCall, f"providerId {provider_id!r} cannot name a folder")
    own_service = service.parse(value.get("service"))
    return Provider(provider_id, _text(value, "image"), apis.section(api), order, config, own_service)


def merge(value: Json) -> Merge:
    """Return the request of `merge-config`.

    Raises:
        Failure: BadCall.
    """
    expected = {_text(item, "providerId"): _text(item, "image") for item in _objects(value, "providers")}
    models = tuple(
        ModelEndpoint(_text(item, "providerId"), _text(item, "urlVariable"), item.get("config") or {})
        for item in _objects(value, "modelDeployments")
    )
    base = str(value.get("base") or f"{layout.BASE_CONFIG}/run.yaml")
    return Merge(expected, models, base, _services(value))


def preflight(value: Json) -> Preflight:
    """Return the request of `preflight`.

    Raises:
        Failure: BadCall.
    """
    seconds, secret = value.get("seconds", PROVIDER_SECONDS), value.get("secret", [])
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 1:
        raise Failure(Code.BadCall, f"seconds must be a number from 1, not {seconds!r}")
    if not isinstance(secret, list) or not all(isinstance(item, str) for item in secret):
        raise Failure(Code.BadCall, "secret must be a list of names of variables")
    services = _services(value)
    for provider_id, item in services.items():
        if not item.address:
            raise Failure(Code.BadCall, f"service.address of provider {provider_id!r} is missing")
    return Preflight(seconds, tuple(secret), str(value.get("unknown", "")), services)


def _services(value: Json) -> dict[str, Service]:
    return {
        _text(item, "providerId"): own_service
        for item in _objects(value, "providers")
        if (own_service := service.parse(item.get("service")))
    }


def _text(value: Json, key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not text:
        raise Failure(Code.BadCall, f"{key} must be a text that is not empty")
    return text


def _objects(value: Json, key: str) -> list[Json]:
    items = value.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Failure(Code.BadCall, f"{key} must be a list of objects")
    return items
