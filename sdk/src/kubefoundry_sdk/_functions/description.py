"""What `describe` returns: all of a provider that is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from kubefoundry_sdk._api import contract_version, formats
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._functions import overrides as overrides_form
from kubefoundry_sdk._provider.contract import (
    Capabilities,
    Deployment,
    HelperKind,
    NoOverrides,
    Observation,
    Provider,
    Rendered,
    SelectionRule,
)
from kubefoundry_sdk._provider.upstream_fields import Fields, by_fields
from kubefoundry_sdk._provider.upstream_kind import Operator, Schema, UpstreamKind, always_there
from kubefoundry_sdk._provider.upstream_pods import Pods

Text = Annotated[str, Field(min_length=1)]
Optional = Literal["probe", "recreate", "mustRecreate", "readBack"]
"""Functions that a program may have or not."""


class WireModel(BaseModel):
    """A part of a message: camelCase keys, strict types, and no unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class OperatorDescription(WireModel):
    """The upstream operator, to find out whether it is up."""

    deployment: Text
    """The name of its Deployment in the upstream's documentation."""
    namespaces: tuple[Text, ...] = Field(min_length=1)
    """The namespaces into which that documentation installs it."""
    lease: Text | None = None
    """The name of its leader election Lease; null if it has none."""

    def operator(self) -> Operator:
        """Return the operator for the runtime."""
        return Operator(self.deployment, self.namespaces, lease=self.lease)


class PodsDescription(WireModel):
    """The pods of an upstream object, by a label that the upstream sets on all of them.

    Paths are keys of the upstream object, such as `status.pools[].name`. `[]` stands for all items of a list. A path
    that is missing, or is not text, has no values.
    """

    label: Text
    """The label's key."""
    values: tuple[Text, ...] = ("metadata.name",)
    """Paths of the label's values."""
    makers: tuple[Text, ...] = ()
    """Paths of the names of the StatefulSets, Deployments or RayClusters that create the pods."""
    creation_events: str | None = None
    """A field selector for Events about pods that could not be created."""
    also: dict[str, str] = Field(default_factory=dict)
    """Further labels of the pods, if other software uses the label, too."""
    owned: bool = False
    """Whether to count only pods whose controller is one of the makers, or a ReplicaSet of one."""
    roles: tuple[str, ...] = ()
    """Keys of the labels that hold a pod's roles."""

    def pods(self) -> Pods:
        """Return the pods for the runtime."""
        return Pods(
            self.label,
            lambda live: _texts(live, self.values),
            makers=lambda live: _texts(live, self.makers),
            creation_events=self.creation_events,
            also=self.also,
            owned=self.owned,
            roles=self.roles,
        )


class ProviderDescription(WireModel):
    """The part of a provider that is data. `Provider` in the SDK's reference says more about each key."""

    name: Annotated[str, Field(max_length=63, pattern=formats.DNS_LABEL)]
    """The name of its InferenceProviderConfig, and what users write into `spec.provider.name`."""
    title: Text
    """Its name in messages."""
    version: Text
    """The version of the program."""
    documentation: str = ""
    """The URL of the upstream's documentation."""
    capabilities: Capabilities
    """The engines, serving modes and hardware that it supports."""
    upstream: UpstreamKind
    """The upstream kind. `version` is set only for a kind that is part of Kubernetes."""
    fields: dict[str, Fields] | None = None
    """In place of `probe`: for each version that the program can write, the best one first, the fields of the CRD
    that it needs, and for each optional feature the field that a CRD with it declares."""
    selection_rules: tuple[SelectionRule, ...] = ()
    """Rules by which it is selected if the user names no provider."""
    overrides: dict[str, Any] | None = None
    """The form of `spec.provider.overrides` as a JSON Schema with `type`, `properties`, `items`, `enum`, `minimum`,
    `maximum` and `description`; null if there are none."""
    ignored_differences: tuple[str, ...] = ()
    """Paths of the main object that others own once it exists, such as an autoscaler's counts."""
    scaled: tuple[str, ...] = ()
    """Paths that autoscalers may write."""
    settles: float = Field(default=0.0, ge=0, le=3600)
    """Seconds after an acknowledged change during which the status may still describe the state before it."""
    names_generation: bool = False
    """Whether the upstream operator writes `status.observedGeneration` with every status."""
    named_by_content: tuple[str, ...] = ()
    """Paths of the main object that hold the name of a helper. The runtime appends a digest of its content."""
    operator: OperatorDescription | None = None
    """The upstream operator; null not to watch it."""
    pods: PodsDescription | None = None
    """The pods in which to look for the reason why a model does not serve; null if the upstream reports it."""

    @field_validator("overrides")
    @classmethod
    def _with_supported_keywords(cls, schema: Object | None) -> Object | None:
        if schema is not None:
            overrides_form.form(schema)
        return schema


class Description(ProviderDescription):
    """A provider whose functions are a program, as far as it is data."""

    protocol: int
    """The version of this protocol that the program speaks, one of the request's `protocols`."""
    contract: Annotated[str, Field(pattern=f"^{contract_version.PATTERN}$")] = contract_version.SILENT
    """The version of the contract whose fields the program knows. The runtime refuses a spec with a field that a
    later version added."""
    functions: tuple[Optional, ...] = ()
    """The optional functions that the program has."""
    helper_kinds: tuple[HelperKind, ...] = ()
    """Kinds of helpers that `render` returns."""
    edits_recreate: bool = False
    """Whether `recreate` recreates for nearly every change. Users are warned when they edit a running model."""

    @model_validator(mode="after")
    def _with_one_way_to_probe(self) -> Description:
        ways = (self.fields is not None) + ("probe" in self.functions)
        if self.upstream.version is None and ways != 1:
            raise ValueError("an upstream kind with a CRD needs either fields or the function probe")
        if self.upstream.version is not None and ways:
            raise ValueError(
                "an upstream kind with a version is part of Kubernetes, and has nothing to probe"
            )
        return self


def provider_of(
    description: ProviderDescription,
    supports: Callable[[Deployment, Schema | None], Sequence[str]],
    render: Callable[[Deployment, Schema], Rendered],
    observe: Callable[[Deployment, Object], Observation],
) -> Provider:
    """Return a provider with these functions. Those that a provider may omit have their defaults."""
    fields = description.fields
    return Provider(
        name=description.name,
        title=description.title,
        version=description.version,
        documentation=description.documentation,
        capabilities=description.capabilities,
        upstream=description.upstream,
        supports=supports,
        render=render,
        observe=observe,
        probe=always_there if fields is None else partial(by_fields, fields),
        selection_rules=description.selection_rules,
        overrides=overrides_form.form(description.overrides) if description.overrides else NoOverrides,
        ignored_differences=description.ignored_differences,
        scaled=description.scaled,
        settles=description.settles,
        names_generation=description.names_generation,
        named_by_content=description.named_by_content,
        operator=description.operator.operator() if description.operator else None,
        pods=description.pods.pods() if description.pods else None,
    )


def _texts(live: Object, paths: tuple[str, ...]) -> list[str]:
    """Return the texts at the paths, each once."""
    values = (value for path in paths for value in _values_at(live, path))
    return list(dict.fromkeys(value for value in values if isinstance(value, str) and value))


def _values_at(live: Object, path: str) -> list[Any]:
    values: list[Any] = [live]
    for step in path.split("."):
        key = step.removesuffix("[]")
        values = [value[key] for value in values if isinstance(value, Mapping) and key in value]
        if step.endswith("[]"):
            values = [item for value in values if isinstance(value, list) for item in value]
    return values
