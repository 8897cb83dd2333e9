"""Checks what a provider's functions return before anything is written.

The API server can store a valid value, and the value affects only this ModelDeployment. The runtime reports a `Fault`
as `ProviderError`, names the provider in it, and retries with back-off (contract §4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeVar, get_args

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import MAX_INT32
from kubefoundry_sdk._api.kinds import HELPER_KINDS, Object
from kubefoundry_sdk._api.status import MOST_APIS
from kubefoundry_sdk._provider import pod_defaults, propagation
from kubefoundry_sdk._provider.contract import (
    Deployment,
    Endpoint,
    Observation,
    ObservedPhase,
    Provider,
    ReadyReason,
    Rendered,
    Replicas,
)
from kubefoundry_sdk._provider.upstream_kind import Schema

OWN: Final = 40
"""The number of characters of the ModelDeployment's name with which the name of each helper has to begin. A provider
may cut off the rest."""

LONGEST_SELECTOR: Final = 1024
LONGEST_URL: Final = 2048
"""Characters of `status.endpoint.url`."""

LONGEST_NAME: Final = 253
"""Characters of `status.endpoint.model`."""

_LABEL: Final = re.compile(formats.DNS_LABEL)
_URL: Final = re.compile(formats.ENDPOINT_URL)
_NAME: Final = re.compile(formats.REPORTED_NAME)
_REASONS: Final = frozenset(get_args(ReadyReason)) - {"EndpointUnverified"}

Answer = TypeVar("Answer")


class Fault(Exception):
    """A provider's function returned an invalid value; the text names the value and the reason."""


def supports(provider: Provider, deployment: Deployment, schema: Schema | None) -> list[str]:
    """Return the provider's problems with a deployment. Raise Fault, and any exception of the function."""
    chosen = propagation.selected(provider.propagates, deployment)
    result: Any = _call("supports", lambda: provider.supports(chosen, schema))
    if isinstance(result, str | bytes | Mapping) or not hasattr(result, "__iter__"):
        raise Fault(f"supports returned {_quoted(result)}, not a list of sentences")
    problems = list(result)
    if invalid := [item for item in problems if not (isinstance(item, str) and item.strip())]:
        raise Fault(f"supports returned {_quoted(invalid[0])} as a problem, which is not a sentence")
    return problems


def render(provider: Provider, deployment: Deployment, schema: Schema) -> Rendered:
    """Return the upstream objects of a deployment. Raise Fault, and any exception of the function."""
    chosen = propagation.selected(provider.propagates, deployment)
    chosen, notes = pod_defaults.applied(
        provider.pod_defaults, chosen, lambda changed: supports(provider, changed, schema)
    )
    rendered = _call("render", lambda: provider.render(chosen, schema))
    for problem in chain(
        wrong_types_of_render(rendered, deployment),
        _render_problems(provider, deployment, schema, rendered),
    ):
        raise Fault(f"render returned {problem}")
    if notes:
        rendered = replace(rendered, notes=(*rendered.notes, *notes))
    return propagation.with_metadata(rendered, chosen)


def observe(provider: Provider, deployment: Deployment, upstream: Object) -> Observation:
    """Return the state of the upstream object. Raise Fault, and any exception of the function."""
    observation = _call("observe", lambda: provider.observe(deployment, upstream))
    for problem in chain(wrong_types_of_observation(observation), _observation_problems(observation)):
        raise Fault(f"observe returned {problem}")
    return observation


def _call(function: str, call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except SystemExit as error:
        raise Fault(f"{function} tried to exit the process") from error


def wrong_types_of_render(rendered: Any, deployment: Deployment) -> Iterator[str]:
    """Yield values that `Rendered` does not allow, for any kind. Each check relies on those before it."""
    if not isinstance(rendered, Rendered):
        yield f"{_quoted(rendered)}, not a Rendered"
    yield from _object_problems(rendered.main, "the upstream object", deployment)
    for field in ("helpers", "notes"):
        if not isinstance(values := getattr(rendered, field), tuple | list):
            yield f"{_quoted(values)} as {field}, not a tuple"
    for helper in rendered.helpers:
        yield from _object_problems(helper, "a helper", deployment)
    if wrong := [note for note in rendered.notes if not isinstance(note, str)]:
        yield f"{_quoted(wrong[0])} as a note, which is not a sentence"
    if not isinstance(rendered.image, str | None):
        yield f"{_quoted(rendered.image)} as the image"


def _render_problems(
    provider: Provider, deployment: Deployment, schema: Schema, rendered: Rendered
) -> Iterator[str]:
    main, kind = rendered.main, provider.upstream.kind
    if (main["apiVersion"], main["kind"]) != (schema.api_version, kind):
        shown = f"{_quoted(main['apiVersion'])} {_quoted(main['kind'])}"
        yield f"the upstream object as {shown}, not {schema.api_version} {kind}"
    if main["metadata"]["name"] != deployment.name:
        yield f"an upstream object of the name {_quoted(main['metadata']['name'])}, not {deployment.name}"
    names = set()
    for helper in rendered.helpers:
        helper_kind = HELPER_KINDS.get(helper["kind"]) if helper["kind"] in provider.helper_kinds else None
        named = f"{_quoted(helper['kind'])} {_quoted(helper['metadata']['name'])}"
        if helper_kind is None or helper["apiVersion"] != helper_kind.api_version:
            yield f"helper {named} of {_quoted(helper['apiVersion'])}, which is not among its helper_kinds"
        if not str(helper["metadata"]["name"]).startswith(deployment.name[:OWN]):
            yield f"helper {named}, whose name does not begin with {deployment.name[:OWN]}"
        if named in names:
            yield f"helper {named} twice"
        names.add(named)


def _object_problems(obj: Any, subject: str, deployment: Deployment) -> Iterator[str]:
    """Yield problems of an object, one at a time: each check relies on those before it."""
    try:
        json.dumps(obj, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"{subject} that is not JSON: {error}"
    if not isinstance(obj, dict) or not all(isinstance(obj.get(key), str) for key in ("apiVersion", "kind")):
        yield f"{subject} without apiVersion or kind"
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        yield f"{subject} without metadata.name"
    if meta.get("namespace", deployment.namespace) != deployment.namespace:
        yield f"{subject} in namespace {_quoted(meta['namespace'])}, not {deployment.namespace}"
    for field in ("labels", "annotations"):
        stated = meta.get(field, {})
        if not isinstance(stated, dict) or not all(isinstance(text, str) for text in stated.values()):
            yield f"{subject} whose {field} are not all strings"
    if extra := sorted(set(meta) - {"name", "namespace", "labels", "annotations"}):
        yield f"{subject} with metadata.{extra[0]}, which only the runtime sets"


def wrong_types_of_observation(observation: Any) -> Iterator[str]:
    """Yield values that `Observation` does not allow. Each check relies on those before it."""
    if not isinstance(observation, Observation):
        yield f"{_quoted(observation)}, not an Observation"
    if not isinstance(observation.phase, str) or observation.phase not in get_args(ObservedPhase):
        yield f"phase {_quoted(observation.phase)}, which is not one of {', '.join(get_args(ObservedPhase))}"
    if not isinstance(observation.reason, str) or observation.reason not in _REASONS:
        yield f"reason {_quoted(observation.reason)}, which is not one of {', '.join(sorted(_REASONS))}"
    if not isinstance(observation.message, str):
        yield f"{_quoted(observation.message)} as the message, which is not a string"
    yield from _wrong_types_of_replicas(observation.replicas)
    if not isinstance(observation.selector, str) or len(observation.selector) > LONGEST_SELECTOR:
        selector = _quoted(observation.selector)
        yield f"{selector} as the selector, not a string of at most {LONGEST_SELECTOR} characters"
    if observation.phase == "Running":
        yield from _wrong_types_of_endpoint(observation.endpoint)


def _wrong_types_of_replicas(counts: Any) -> Iterator[str]:
    if not isinstance(counts, Replicas):
        yield f"{_quoted(counts)}, not Replicas"
    for name in ("desired", "ready", "available"):
        value = getattr(counts, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_INT32:
            yield f"{_quoted(value)} {name} replicas"


def _wrong_types_of_endpoint(endpoint: Any) -> Iterator[str]:
    if not isinstance(endpoint, Endpoint):
        yield f"{_quoted(endpoint)}, not an Endpoint"
    for title, value in (("URL", endpoint.url), ("service", endpoint.service), ("model", endpoint.model)):
        if not isinstance(value, str):
            yield f"{title} {_quoted(value)}, which is not a string"
    if not isinstance(endpoint.apis, tuple | list) or not all(isinstance(api, str) for api in endpoint.apis):
        yield f"apis {_quoted(endpoint.apis)}, which is not a tuple of strings"
    if not isinstance(endpoint.port, int) or isinstance(endpoint.port, bool):
        yield f"port {_quoted(endpoint.port)}, which is not a number"


def _observation_problems(observation: Observation) -> Iterator[str]:
    if (observation.phase == "Running") != (observation.reason == "DeploymentReady"):
        yield f"phase {observation.phase} with reason {observation.reason}"
    if observation.phase == "Running":
        if observation.replicas.ready == 0:
            yield "phase Running with 0 ready replicas"
        yield from endpoint_problems(observation.endpoint)


def endpoint_problems(endpoint: Endpoint) -> Iterator[str]:
    """Yield the reasons why an endpoint cannot be published."""
    if len(endpoint.url) > LONGEST_URL or (endpoint.url and not _URL.fullmatch(endpoint.url)):
        form = f"http(s)://HOST[:PORT][/PATH] of at most {LONGEST_URL} characters"
        yield f"URL {_quoted(endpoint.url)}, which is not {form}"
    if len(endpoint.model) > LONGEST_NAME or not _NAME.fullmatch(endpoint.model):
        meaning = formats.MEANINGS[formats.REPORTED_NAME]
        yield f"model {_quoted(endpoint.model)}, which is not {meaning}, with at most {LONGEST_NAME} characters"
    if len(endpoint.apis) > MOST_APIS or len(set(endpoint.apis)) < len(endpoint.apis):
        yield f"apis {_quoted(endpoint.apis)}, which are not at most {MOST_APIS} different names"
    for api in endpoint.apis:
        if len(api) > 63 or not _LABEL.fullmatch(api):
            yield f"API {_quoted(api)}, which is not a name of lower-case letters, digits and inner dashes"
    if endpoint.url and (endpoint.service, endpoint.port) == ("", 0):
        return
    if len(endpoint.service) > 63 or not _LABEL.fullmatch(endpoint.service):
        yield f"service {_quoted(endpoint.service)}, which is not a valid Service name"
    if not 1 <= endpoint.port <= 65535:
        yield f"port {_quoted(endpoint.port)}, which is not 1 to 65535"


def _quoted(value: object) -> str:
    """Return a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
