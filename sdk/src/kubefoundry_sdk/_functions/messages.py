"""The messages of docs/functions.md: requests from the SDK's types, and responses read into them.

`make docs` writes docs/functions.schema.json from the models of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._functions import strict_json
from kubefoundry_sdk._functions.description import Description, WireModel
from kubefoundry_sdk._provider.contract import Deployment, Observation, Rendered
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema

PROTOCOLS: Final = (1,)
"""The versions of the protocol that this SDK speaks, the newest first."""


class Lie(Fault):
    """A response that is not one to the request. The program cannot be trusted to answer the next one."""


class Settings(WireModel):
    """What an administrator set with flags: the same in every request to a process."""

    # Never read from a line.
    model_config = ConfigDict(populate_by_name=True)

    default_images: dict[str, str] = Field(default_factory=dict)
    """The image of an engine for ModelDeployments that name none (`--default-image`)."""
    values: dict[str, str] = Field(default_factory=dict)
    """The program's own settings (`--set NAME=VALUE`)."""


class DeploymentMessage(WireModel):
    """A ModelDeployment: validated, with the defaults filled in."""

    name: str
    """Name, and the name of the upstream object."""
    namespace: str
    """Namespace."""
    uid: str
    """UID."""
    generation: int
    """Generation of the spec."""
    labels: dict[str, str]
    """Labels of the ModelDeployment."""
    annotations: dict[str, str]
    """Annotations of the ModelDeployment."""
    spec: ModelDeploymentSpec
    """The spec. Fields that are not set and have no default are omitted."""
    served_name: str | None
    """The model's name in the API: `model.servedName`, or the last part of the id; null with `source: custom`."""
    gpu_count: int
    """GPUs of a replica in aggregated mode; 0 if none are set."""


class ReadBack(WireModel):
    """Specs that may render to a live object, or the reason why there is none."""

    specs: tuple[Object, ...] = ()
    """Specs without `provider.name`, the most likely first."""
    not_readable: str | None = None
    """Why no ModelDeployment of this provider renders to the object, for the user."""


ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "describe": {"protocols": (tuple[int, ...], ...)},
    "probe": {"crd": (Object, ...)},
    "supports": {"deployment": (DeploymentMessage, ...), "schema_": (Schema | None, Field(alias="schema"))},
    "render": {"deployment": (DeploymentMessage, ...), "schema_": (Schema, Field(alias="schema"))},
    "observe": {"deployment": (DeploymentMessage, ...), "object": (Object, ...)},
    "recreate": {"old": (Rendered, ...), "new": (Rendered, ...)},
    "mustRecreate": {"object": (Object, ...)},
    "readBack": {"object": (Object, ...), "helpers": (tuple[Object, ...], ...)},
}
"""The functions, and the keys of their requests beyond `id`, `function`, `protocol` and `settings`."""

RESULTS: Final[Mapping[str, Any]] = {
    "describe": Description,
    "probe": Schema | UnsupportedSchema,
    "supports": tuple[str, ...],
    "render": Rendered,
    "observe": Observation,
    "recreate": str | None,
    "mustRecreate": bool,
    "readBack": ReadBack,
}
"""The type of each function's result."""

_STRICT: Final = ConfigDict(
    extra="forbid", alias_generator=to_camel, strict=True, use_attribute_docstrings=True
)


def _titled(function: str, part: str) -> str:
    return f"{function[0].upper()}{function[1:]}{part}"


def result_model(function: str, form: Any = None) -> type[BaseModel]:
    """Return the model of a function's response that has a result."""
    form = RESULTS[function] if form is None else form
    return create_model(_titled(function, "Response"), __config__=_STRICT, id=(int, ...), result=(form, ...))


def request_model(function: str) -> type[BaseModel]:
    """Return the model of a function's request."""
    fields: dict[str, Any] = {
        "id": (int, ...),
        "function": (str, Field(json_schema_extra={"const": function})),
        **({} if function == "describe" else {"protocol": (int, ...)}),
        "settings": (Settings, ...),
        **ARGUMENTS[function],
    }
    return create_model(_titled(function, "Request"), __config__=_STRICT, **fields)


class ErrorResponse(WireModel):
    """The function failed: a mistake of the program, not a refusal, which is a result of `supports`."""

    id: int
    """The request's id."""
    error: str = Field(min_length=1)
    """A sentence that the ModelDeployment's status shows."""


_RESPONSES: Final = {function: result_model(function) for function in RESULTS}
_PROBED: Final = {form: result_model("probe", form) for form in (Schema, UnsupportedSchema)}


def deployment(value: Deployment) -> Object:
    """Return a deployment as a request has it."""
    return {
        "name": value.name,
        "namespace": value.namespace,
        "uid": value.uid,
        "generation": value.generation,
        "labels": dict(value.labels),
        "annotations": dict(value.annotations),
        "spec": value.spec.model_dump(by_alias=True, exclude_none=True),
        "servedName": value.spec.served_name,
        "gpuCount": value.spec.gpu_count,
    }


def schema(value: Schema | None) -> Object | None:
    """Return the result of `probe` as a request has it."""
    if value is None:
        return None
    return {
        "apiVersion": value.api_version,
        "features": sorted(value.features),
        "lost": list(value.lost),
        "discovered": dict(value.discovered),
    }


def rendered(value: Rendered) -> Object:
    """Return the result of `render` as a request has it."""
    return {
        "main": value.main,
        "helpers": list(value.helpers),
        "notes": list(value.notes),
        "image": value.image,
    }


def observed(value: Observation) -> Object:
    """Return the result of `observe` as a response has it."""
    return {to_camel(name): part for name, part in asdict(value).items()}


def read(function: str, line: bytes, request_id: int) -> Any:
    """Return the result in a response.

    Raise Lie if the line is not a response to the request. Raise Fault if it reports an error, or has another form
    than the function's result.
    """
    try:
        response = strict_json.decode(line)
    except strict_json.Invalid as error:
        raise Lie(f"its program wrote a line {error}, in {function}") from error
    if not isinstance(response, dict):
        raise Lie(f"its program wrote a line that is not an object, in {function}")
    if response.get("id") != request_id or isinstance(response.get("id"), bool):
        raise Lie(f"its program responded to {function} with another id than the request's")
    if unknown := sorted(response.keys() - {"id", "result", "error"}):
        raise Lie(f"its program responded to {function} with the unknown key {unknown[0][:60]!r}")
    if ("result" in response) == ("error" in response):
        raise Lie(f"its program responded to {function} with neither or both of result and error")
    if "error" in response:
        text = response["error"]
        if not (isinstance(text, str) and text.strip()):
            raise Lie(f"its program responded to {function} with an error that is not a sentence")
        raise Fault(f"{function} failed: {text[:500]}")
    return _typed(function, response)


def _typed(function: str, response: Object) -> Any:
    model = _RESPONSES[function]
    if function == "probe":
        missing = isinstance(response["result"], dict) and "missing" in response["result"]
        model = _PROBED[UnsupportedSchema if missing else Schema]
    try:
        value: Any = model.model_validate_json(strict_json.encode(response))
    except ValidationError as error:
        raise Fault(f"{function} returned {problem(error)}") from error
    if isinstance(value.result, Schema) and value.result.discovered:
        raise Fault("probe returned result.discovered: only the runtime sets it")
    return value.result


def problem(error: ValidationError) -> str:
    """Return the first problem with its path: `result.replicas.ready: should be a valid integer`."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}" for part in first["loc"])
    words = {
        "extra_forbidden": "is an unknown key",
        "unexpected_keyword_argument": "is an unknown key",
        "missing": "is required",
        "missing_argument": "is required",
    }
    text = words.get(first["type"]) or first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{path.lstrip('.')}: {text[:200]}"
