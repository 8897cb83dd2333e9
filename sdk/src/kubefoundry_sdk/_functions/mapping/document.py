"""The file of a mapping: its keys, and how it is read.

`make docs` writes docs/mapping.schema.json from the models of this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, Field, ValidationError, model_validator

from kubefoundry_sdk._api import foreign_yaml
from kubefoundry_sdk._functions.description import ProviderDescription, Text, WireModel
from kubefoundry_sdk._functions.mapping.expression import Invalid, suggestion
from kubefoundry_sdk._functions.messages import problem
from kubefoundry_sdk._provider.contract import ObservedPhase

MAX_CHARACTERS: Final = 64 * 1024
"""The longest file: a mapping is a few hundred lines."""


class ProblemRule(WireModel):
    """A reason to refuse a ModelDeployment."""

    when: Text
    """A condition in CEL. It does not hold if it reads a field that is not set."""
    say: Text
    """A sentence for the user: the reason, and the remedy. It may contain expressions."""


class EndpointTemplate(WireModel):
    """The address of the API: a Service in the same namespace and its port, or a URL."""

    service: str = ""
    """The Service's name."""
    port: int | str = 0
    """The Service's port."""
    url: str = ""
    """The URL before `/v1/…`. It may be all that is given."""
    model: str = ""
    """The model's name in requests to the API. Empty if it is not known."""


class PhaseRule(WireModel):
    """A phase, and the condition under which the upstream object is in it."""

    when: Text | None = None
    """A condition in CEL. It does not hold if it reads a field that is missing. Null holds always."""
    phase: ObservedPhase
    """The phase of the ModelDeployment. `Running` means that the model serves now."""
    message: str = ""
    """A sentence for the user, if `message` of the section is empty. It may contain expressions."""


class StatusMapping(WireModel):
    """How the upstream object's status becomes that of the ModelDeployment."""

    ready: int | str
    """The number of ready replicas. A value that is not a count is 0."""
    desired: int | str = "${spec.scaling.replicas}"
    """The number of replicas that the spec asks for."""
    endpoint: EndpointTemplate
    """The address of the API."""
    message: str = ""
    """The upstream's message for the user."""
    phases: tuple[PhaseRule, ...] = Field(min_length=1)
    """The phases: the first one whose condition holds. If there is none, the state is unknown."""
    updating: Text | None = None
    """A condition in CEL: whether pods of an earlier spec still serve, although the upstream has seen the new one."""
    update_failed: Text | None = None
    """A condition in CEL: whether an earlier spec serves because the update to the newest one failed."""
    selector: str = ""
    """The label selector of the serving pods, for autoscalers."""


class MappingFile(ProviderDescription):
    """A provider without code: how a ModelDeployment becomes an upstream object, and how its status is read."""

    refused: dict[str, Text] = Field(default_factory=dict)
    """Sentences for fields of the spec that the provider refuses, by path; `{field}` becomes the path. Every other
    field that no template reads is refused with a standard sentence."""
    problems: tuple[ProblemRule, ...] = ()
    """Further reasons to refuse a ModelDeployment."""
    object: dict[str, Any]
    """The upstream object as a template, without apiVersion, kind, name and namespace, which the runtime sets."""
    helpers: tuple[dict[str, Any], ...] = ()
    """Templates of ConfigMaps, Services and PersistentVolumeClaims that have to exist first: kind, metadata.name and
    content."""
    status: StatusMapping
    """How the upstream object's status becomes that of the ModelDeployment."""

    @model_validator(mode="after")
    def _with_fields_to_probe(self) -> MappingFile:
        if (self.fields is None) == (self.upstream.version is None):
            raise ValueError("an upstream kind with a CRD needs fields, and a kind of Kubernetes has none")
        return self


def read(text: str) -> MappingFile:
    """Return the content of a mapping's file.

    Raise Invalid, with the path and the reason, if the text is too long, is not YAML, or is not a mapping.
    """
    if len(text) > MAX_CHARACTERS:
        raise Invalid(f"the file has more than {MAX_CHARACTERS} characters")
    try:
        encoded = json.dumps(foreign_yaml.document(text), allow_nan=False)
    except foreign_yaml.Unreadable as error:
        unquoted = any(words in str(error) for words in ("mapping values are not allowed", "parsing a flow"))
        hint = " (quote a text that has ': ', '#' or braces)" if unquoted else ""
        raise Invalid(f"the file {error}{hint}") from error
    except (TypeError, ValueError) as error:
        raise Invalid(f"the file has a value that JSON does not have: {error}") from error
    try:
        # As JSON, a list fits a tuple in strict mode.
        return MappingFile.model_validate_json(encoded)
    except ValidationError as error:
        raise Invalid(f"{problem(error)}{_hint(error)}") from error


def _hint(error: ValidationError) -> str:
    """Return the key that an unknown one may mean."""
    first = error.errors(include_url=False, include_input=False)[0]
    unknown = first["type"] in ("extra_forbidden", "unexpected_keyword_argument")
    return suggestion(str(first["loc"][-1]), sorted(set(_keys(MappingFile)))) if unknown else ""


def _keys(model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        yield from part.get("properties", {})
