"""A provider: the description of its upstream kind, and four pure functions on typed values.

`probe(crd) -> schema`, `supports(deployment) -> problems`, `render(deployment) -> objects` and `observe(deployment,
object) -> observation` receive everything as arguments: no client, no clock, no globals. The runtime
(`kubefoundry_sdk._provider`) registers the provider, watches, applies, writes the status and deletes (contract §4). A
provider contains no code for any of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel

from kubefoundry_sdk._api import contract_version
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.upstream_kind import (
    Operator,
    Schema,
    UnsupportedSchema,
    UpstreamKind,
    always_there,
)
from kubefoundry_sdk._provider.upstream_pods import Pods

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label that names the queue of Kueue in which an object waits for quota."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A ModelDeployment as a provider sees it: validated and defaulted, always with `spec.engine.type`."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: ModelDeploymentSpec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    raw_spec: Mapping[str, Any] = field(default_factory=dict)
    """The spec as stored, with the selected engine if it names none. The runtime records it next to the applied
    manifest."""
    propagated_labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the runtime adds to the upstream object (`--propagate-labels`)."""
    propagated_annotations: Mapping[str, str] = field(default_factory=dict)
    """The annotations that the runtime adds to the upstream object (`--propagate-annotations`)."""

    def __post_init__(self) -> None:
        """Name the claims that core creates, so that a provider finds each claim in `claim_name`."""
        storage = self.spec.model.storage.with_claim_names(self.name)
        if storage is not self.spec.model.storage:
            model = self.spec.model.model_copy(update={"storage": storage})
            object.__setattr__(self, "spec", self.spec.model_copy(update={"model": model}))


@dataclass(frozen=True, slots=True)
class Rendered:
    """The upstream objects of a deployment.

    `main` and `helpers` carry apiVersion, kind, metadata.name (labels and annotations where the upstream needs them)
    and their content. The runtime adds namespace, owner, and KubeFoundry's labels and annotations.

    Attributes:
        main: The object of the upstream kind.
        helpers: Objects that must exist first, of the provider's `helper_kinds`. Each name begins with the
            deployment's name, or with its first 40 characters.
        notes: Sentences for the user about this rendering; shown in `ProviderCompatible`.
        image: The image that serves; None if the upstream chooses it. The runtime keeps a default image for this
            deployment: later renders receive it as `spec.image`, so all values derived from it stay consistent.
    """

    main: Object
    helpers: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Replicas:
    """Counts of serving units, as in `status.replicas`."""

    desired: int
    ready: int
    available: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of the OpenAI-compatible API once it is ready: a Service in the same namespace, and its port.

    Attributes:
        service: The Service's name.
        port: The Service's port.
        url: The URL before `/v1/…` if that is not plain http at the Service: `https://gateway.infra/models/m`.
            With a url, service and port may be omitted, for a gateway in another namespace. Only a Service can be
            verified (`--verify-endpoint`).
        model: The name by which a request addresses the model (`"model"` in its body); empty if the spec does not
            show it, as for a model inside an image.
        apis: The APIs that the server offers (`kubefoundry_sdk.engine.served_apis`); empty if the spec does not show
            them.
    """

    service: str = ""
    port: int = 0
    url: str = ""
    model: str = ""
    apis: tuple[str, ...] = ()


ObservedPhase = Literal["Pending", "Deploying", "Running", "Failed"]
ReadyReason = Literal[
    "DeploymentReady", "Progressing", "Failed", "ScaledToZero", "Unknown", "EndpointUnverified"
]
"""Reasons of `Ready`. Only the runtime sets `EndpointUnverified`."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The upstream object's state in KubeFoundry's terms (contract §3: phases, reasons of `Ready`).

    Attributes:
        phase: The phase; `Running` means that the model serves now.
        reason: The reason of `Ready`.
        message: The upstream's message.
        replicas: The counts of replicas.
        endpoint: The endpoint, published only while `Running`.
        updating: Whether pods of an earlier spec still serve, alone or next to new ones, although the upstream
            has seen the new spec. The status then reports the earlier generation.
        update_failed: Whether an earlier spec serves because the update to the newest one failed; `message` says
            why. The status then reports the earlier generation, because the newest one is not ready.
        unclear: Whether the upstream does not report at the moment whether the model serves. A `Running` model then
            stays `Running` for a few seconds.
        selector: The label selector of the serving pods, for autoscalers of the ModelDeployment; empty if the
            upstream does not report one.
        acknowledged: Whether the upstream has processed the current object. Set it if the status of the kind shows
            this in its own way. With None, the runtime compares `status.observedGeneration`. Without that field, it
            waits until the status was written after the last apply (but see `Provider.names_generation`).
    """

    phase: ObservedPhase
    reason: ReadyReason
    message: str
    replicas: Replicas
    endpoint: Endpoint
    update_failed: bool = False
    updating: bool = False
    unclear: bool = False
    selector: str = ""
    acknowledged: bool | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The engines, serving modes and hardware that a provider supports (contract §5)."""

    engines: tuple[str, ...]
    serving_modes: tuple[str, ...]
    cpu_support: bool
    gpu_support: bool


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """A CEL condition that makes the provider a candidate, and its priority; `reason` is shown to the user."""

    condition: str
    priority: int
    reason: str | None = None


HelperKind = Literal["ConfigMap", "Service", "PersistentVolumeClaim"]


@dataclass(frozen=True, slots=True)
class Document:
    """A field whose text is a YAML document.

    Attributes:
        kind: The kind of the object that has the field.
        path: The keys from the object's root (`("data", "config.yaml")`).
        write: Returns the text of decoded content, as the provider renders it.
    """

    kind: str
    path: tuple[str, ...]
    write: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Propagation:
    """Keys that pass from a ModelDeployment to its upstream object; the defaults are Kueue's.

    Attributes:
        labels: Keys of labels.
        annotations: Keys of annotations.
    """

    labels: tuple[str, ...] = (QUEUE_LABEL, "kueue.x-k8s.io/priority-class")
    annotations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodDefaults:
    """An administrator's settings for the pods of models that do not set them (`--pod-…`).

    Attributes:
        variables: Names and values of environment variables.
        ca_bundle: `CONFIGMAP/KEY` of a CA bundle in the namespace of the model; empty for none.
    """

    variables: tuple[tuple[str, str], ...] = ()
    ca_bundle: str = ""


class NotReadable(Exception):
    """No ModelDeployment of this provider renders to the upstream object.

    The text names the part of the object that is the reason, for the user.
    """


class NoOverrides(BaseModel):
    """The overrides of a provider that has none."""


def in_place(old: Rendered, new: Rendered) -> str | None:
    """Return None: the default `recreate`, for an upstream that makes every change in place."""
    return None


def never(live: Object) -> bool:
    """Return False: the default `must_recreate`, for an upstream that acts on every change."""
    return False


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: its upstream kind, and the functions with which the runtime deploys on it.

    Attributes:
        name: The name of its InferenceProviderConfig.
        title: Its name in messages (contract §2).
        version: The version of the provider's package, as `importlib.metadata` reports it (`0.1.0`).
        documentation: The URL of the upstream's documentation.
        capabilities: The engines, serving modes and hardware that it supports.
        upstream: The upstream kind.
        selection_rules: Rules by which it is selected if the user names no provider (contract §5).
        helper_kinds: Kinds of helpers, such as ConfigMap.
        overrides: The typed form of `spec.provider.overrides`. Wrong types make `ProviderCompatible` False;
            unknown keys at any depth cause a warning (contract §2).
        probe: Returns the schema with which to write the installed CRD (JSON), or the missing fields. Omit it for a
            kind that is part of Kubernetes.
        supports: Returns a sentence for each problem beyond engine, mode and CPU/GPU, which the runtime checks
            against `capabilities`; empty if the deployment can be served. The schema is None while the CRD is not
            installed.
        recreate: Returns why the upstream object must be deleted and recreated to get from the first render to
            the second, or None. The runtime itself recreates the object if an identity field changes (contract §4).
        edits_recreate: Whether `recreate` recreates for nearly every change. Users are warned when they edit a
            running model.
        must_recreate: Checks whether the upstream operator ignores all further changes of a live object. The
            user's next change, a refresh included, then deletes and recreates it.
        ignored_differences: Paths of the main object (`spec.groups[*].replicas`) that others own once it exists,
            such as an autoscaler's counts. The rendered values are used at creation. Later values are not drift and
            are not overwritten.
        shared: Paths of maps and lists of the main object (`spec.template.spec.nodeSelector`) to which Kueue adds
            entries while the object is in a queue. An apply then carries these entries, because it would remove them
            from an atomic list, and they are not reported as fields of others.
        scaled: Paths that autoscalers may write. The live value is not drift and is kept until the user changes
            the field.
        render: Returns the upstream objects, see `Rendered`. Called only if `supports` found no problem.
        observe: Returns the state of the upstream object, see `Observation`.
        contract: The version of the contract whose fields `supports` and `render` know. The runtime refuses a spec
            with a field that a later version added, because the provider would drop it silently.
        settles: Seconds after an acknowledged change (`status.observedGeneration`) during which the upstream's
            status may still describe the state before it. The status during that time does not make a new
            generation Ready.
        names_generation: Whether the upstream operator writes `status.observedGeneration` with every status, once its
            CRD declares the field. A status without the field then acknowledges no edit. Leave it False unless every
            release writes the field: with an operator that omits it, models would never be Ready.
        documents: Fields whose text is YAML. An edit changes only what the user changed in the text, as in the
            rest of a manifest.
        named_by_content: Paths of the main object (`inference.config`) that hold the name of a helper. The
            runtime appends a digest of the helper's content to that name, so new content is a new helper: it can
            be tried while the old one serves, and the old one is deleted once nothing refers to it.
        operator: The upstream operator. The runtime watches its Deployment to find out whether it is up, and to read
            its settings, if the provider's ServiceAccount has the permission. None to do neither.
        pods: The pods in which the runtime looks for the reason why a deployment does not serve. None if the
            upstream reports it.
        queued: Whether Kueue may hold the upstream object or its pods. The runtime then watches Kueue's Workloads, if
            Kueue is installed and the provider's ServiceAccount has the permission, and reports why they wait.
        read_back: Returns specs (JSON, without `provider.name`) of ModelDeployments that may render to a live
            upstream object and the helpers that it names, the most likely first; used by `kubefoundry import`.
            They may be guesses: a spec counts only if it renders to the live object. They may contain values that
            a render would add anyway. Raises NotReadable.
        blocking: Whether the functions wait for another program. The runtime then calls `supports`, `render`,
            `recreate`, `must_recreate` and `observe` in threads, several at a time, so that its watches and its Lease
            go on.
        propagates: The labels and annotations that pass from a ModelDeployment to its upstream object. `run` and
            `from_flags` set them, not the provider.
        pod_defaults: The administrator's settings for the pods of models. `render` receives them as `spec.env` and
            `spec.podTemplate`, if `supports` accepts them there. `run` and `from_flags` set them, not the provider.
        flags: The flags that shape the written objects, by name (`--default-image`), as the process was started
            with them. The registration publishes them. `run` and `from_flags` set them, not the provider.
        from_flags: Returns the provider as its process builds it from such flags, for the command line:
            `partial(from_flags, NAME, build, add_arguments)`. Raises ValueError for unknown flags.
    """

    name: str
    title: str
    version: str
    documentation: str
    capabilities: Capabilities
    upstream: UpstreamKind
    supports: Callable[[Deployment, Schema | None], Sequence[str]]
    render: Callable[[Deployment, Schema], Rendered]
    observe: Callable[[Deployment, Object], Observation]
    probe: Callable[[Object], Schema | UnsupportedSchema] = always_there
    selection_rules: tuple[SelectionRule, ...] = ()
    overrides: type[BaseModel] = NoOverrides
    recreate: Callable[[Rendered, Rendered], str | None] = in_place
    edits_recreate: bool = False
    must_recreate: Callable[[Object], bool] = never
    ignored_differences: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    contract: str = contract_version.SILENT
    settles: float = 0.0
    names_generation: bool = False
    documents: tuple[Document, ...] = ()
    named_by_content: tuple[str, ...] = ()
    helper_kinds: tuple[HelperKind, ...] = ()
    operator: Operator | None = None
    pods: Pods | None = None
    queued: bool = False
    read_back: Callable[[Object, Sequence[Object]], Sequence[Object]] | None = None
    blocking: bool = False
    propagates: Propagation = field(default_factory=Propagation)
    pod_defaults: PodDefaults = field(default_factory=PodDefaults)
    flags: Mapping[str, str] = field(default_factory=dict)
    from_flags: Callable[[Mapping[str, str]], Provider] | None = None

    def __post_init__(self) -> None:
        if not contract_version.is_version(self.contract):
            raise ValueError(f"contract {self.contract!r} is no version, such as {contract_version.CURRENT}")
