"""What a provider is: a description of its upstream kind and four pure functions on typed values.

`probe(crd) -> schema`, `supports(deployment) -> problems`, `render(deployment) -> objects` and
`observe(deployment, object) -> observation` get everything as arguments: no client, no clock, no global.
The runtime (`kubefoundry_sdk.provider`) registers the provider, watches, applies, writes status and deletes
(contract §4); a provider holds no code for any of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec


@dataclass(frozen=True, slots=True)
class UpstreamKind:
    """A kind of the upstream system, without a version: which one is used is for `probe` to say.

    version: of a kind that is part of Kubernetes (`v1` of Deployments): it has no CRD, is always there, and is
        written in that version. Objects of ours are then known by their labels.
    """

    group: str
    plural: str
    kind: str
    version: str | None = None

    @property
    def crd(self) -> str:
        return f"{self.plural}.{self.group}"

    def served(self, api_version: str) -> Kind:
        """How its objects are addressed through `group/version`."""
        version = api_version.rpartition("/")[2]
        return Kind(self.group, version, self.plural, self.kind, built_in=self.version is not None)

    @property
    def schema(self) -> Schema | None:
        """How a kind of Kubernetes is written; None for one that has a CRD, which `probe` reads."""
        return None if self.version is None else Schema(f"{self.group}/{self.version}")


@dataclass(frozen=True, slots=True)
class Schema:
    """The upstream CRD that is installed, as `probe` found it.

    api_version: `group/version` to write and read through (the storage version where the provider knows it,
        contract §4.8).
    features: names, the provider's own, of the optional fields that this CRD has.
    lost: what a ModelDeployment cannot ask for with this CRD and could with a newer one, a few words each.
    discovered: settings that the upstream operator's Deployment tells (`Operator.read`); the runtime adds them.
    """

    api_version: str
    features: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()
    discovered: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class UnsupportedSchema:
    """The installed CRD lacks what the provider needs: `missing` are field paths or versions."""

    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """The upstream operator: what shows whether it is up, and settings of the provider that its CRD does not show.

    deployment: the name under which the upstream's own documentation installs it.
    namespaces: where that documentation installs it. Elsewhere it is looked at only where an administrator says so.
    lease: the name of its leader election's Lease, in the same namespaces; None where it holds none.
    read: the Deployment (JSON) -> settings by name, empty where it tells none; None where no setting can be read.
    stated: settings that an administrator gave the provider by flags: they take precedence over what is read.
    """

    deployment: str
    namespaces: tuple[str, ...]
    read: Callable[[Object], Mapping[str, str]] | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A ModelDeployment as a provider sees it: validated and defaulted."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: ModelDeploymentSpec
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    raw_spec: Mapping[str, Any] = field(default_factory=dict)
    """The spec as it is stored: what is recorded beside the applied manifest."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a deployment is upstream.

    main: the object of the upstream kind. helpers: objects that must exist first, of the provider's `helper_kinds`;
        the name of each begins with the deployment's, or with its first 40 characters.
    Both carry apiVersion, kind, metadata.name (labels and annotations where the upstream needs some) and their
    content; namespace, owner, KubeFoundry's labels and annotations are the runtime's to add.
    notes: what the user should know of this rendering, a sentence each; shown in `ProviderCompatible`.
    image: the image that serves, None where the upstream chooses it. A default one stays the same for this
        deployment: later renders get it as `spec.image`, so that whatever follows from it keeps fitting.
    """

    main: Object
    helpers: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Replicas:
    """Counts of serving units, in the sense of `status.replicas`."""

    desired: int
    ready: int
    available: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the OpenAI-compatible API answers once it is ready: the Service (same namespace) and its port.

    url: what `/v1/…` is appended to where that is no plain http at the Service: `https://gateway.infra/models/m`.
        With it service and port may be left out: for a gateway of another namespace. Only a Service can be verified
        (`--verify-endpoint`).
    """

    service: str = ""
    port: int = 0
    url: str = ""


ObservedPhase = Literal["Pending", "Deploying", "Running", "Failed"]
ReadyReason = Literal[
    "DeploymentReady", "Progressing", "Failed", "ScaledToZero", "Unknown", "EndpointUnverified"
]
"""The last one is the runtime's to give."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The upstream object's state in our terms (contract §3: reasons of `Ready`, phases).

    phase Running means that it serves now. `message` carries the upstream's own words. `endpoint` is published only
    when Running.
    updating: whether what serves is still, or also, of an earlier spec, though the upstream has seen the new one:
        the status then speaks of the earlier generation.
    update_failed: whether an earlier spec serves because the update to the newest one failed; `message` says why. The
        status speaks of the earlier generation, too: the newest one is not ready.
    selector: the label selector of the pods that serve, for autoscalers of the ModelDeployment; empty where the
        upstream tells none.
    """

    phase: ObservedPhase
    reason: ReadyReason
    message: str
    replicas: Replicas
    endpoint: Endpoint
    update_failed: bool = False
    updating: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can serve (contract §5)."""

    engines: tuple[str, ...]
    serving_modes: tuple[str, ...]
    cpu_support: bool
    gpu_support: bool


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """A CEL condition under which the provider is a candidate, and how strongly; `reason` is shown to the user."""

    condition: str
    priority: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Pods:
    """Which pods belong to an upstream object, by a label that the upstream system puts on all that it makes.

    label: its key. values: an upstream object -> the label's values on the pods of that object.
    makers: an upstream object -> names of what creates its pods: StatefulSets, Deployments, RayClusters.
    creation_events: a field selector of the Events that tell of pods which could not be created; without it that is
        not looked at.
    also: labels that the pods have, too, where the key of `label` is anybody's (`app.kubernetes.io/name`).
    owned: whether only pods count whose controller is one of `makers`, or a ReplicaSet of one.
    """

    label: str
    values: Callable[[Object], Sequence[str]]
    makers: Callable[[Object], Sequence[str]] = lambda upstream: ()
    creation_events: str | None = None
    also: Mapping[str, str] = field(default_factory=dict)
    owned: bool = False


HelperKind = Literal["ConfigMap", "Service", "PersistentVolumeClaim"]


@dataclass(frozen=True, slots=True)
class Document:
    """A field whose text is a YAML document.

    kind: of the object that has it. path: keys from the object's root (`("data", "config.yaml")`).
    write: the content -> the text, as the provider renders it.
    """

    kind: str
    path: tuple[str, ...]
    write: Callable[[Any], str]


class NotReadable(Exception):
    """An upstream object that no ModelDeployment of this provider gives; the text says what it has, for the user."""


class NoOverrides(BaseModel):
    """The overrides of a provider that has none."""


def in_place(old: Rendered, new: Rendered) -> str | None:
    """The `recreate` of a provider whose upstream takes every change in place."""
    return None


def always_there(crd: Object) -> Schema | UnsupportedSchema:
    """The `probe` of a provider whose upstream kind has a version of its own; never called."""
    raise LookupError("a kind that is part of Kubernetes has no CRD to probe")


def never(live: Object) -> bool:
    """The `must_recreate` of a provider whose upstream takes up every change."""
    return False


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider. `name` is its InferenceProviderConfig's name, `title` how messages call it (contract §2).

    version: of the provider's package, as `importlib.metadata` tells it (`0.1.0`).

    overrides: the typed form of `spec.provider.overrides`; wrong types make `ProviderCompatible` False, unknown
        keys at any depth are warned about (contract §2).
    probe: the installed CRD (JSON) -> how to write it, or what is missing. Left out for a kind of Kubernetes.
    supports: problems beyond engine, mode and CPU/GPU (which the runtime reads off `capabilities`): a sentence
        each, empty when it can be deployed. The schema is None while the CRD is not installed.
    recreate: from two renders, why the upstream object must be deleted and recreated to become the second one
        (beyond the identity fields of contract §4, which the runtime knows), or None.
    must_recreate: whether the upstream operator ignores every further change of a live object: the user's next
        change, a refresh included, then deletes and recreates it.
    ignored_differences: paths of the main object (`spec.groups[*].replicas`) that belong to others once it exists: an
        autoscaler's counts. They are rendered at creation, and neither drift nor overwritten afterwards.
    scaled: paths that autoscalers write while they are there: what is there is no drift and is kept, until the
        user's own change gives them another value.
    render, observe: see `Rendered` and `Observation`; called only after `supports` found nothing.
    settles: seconds after acknowledging a change (`status.observedGeneration`) during which the upstream's status may
        still tell of before: a model is not called Ready at a new generation by it.
    documents: fields whose text is YAML: only what the user changes in it is changed, as in the rest of a manifest.
    named_by_content: paths of the main object (`inference.config`) that hold the name of a helper. The runtime adds a
        digest of the content to that name: another content is another helper, so that it can be tried while the
        old one serves, and the old one goes once nothing refers to it.
    operator: what shows whether the upstream operator is up, and tells settings of the provider; looked at where the
        provider's account may. None where there is nothing to find out.
    pods: where the runtime finds out why what was deployed does not serve; None where the upstream says it itself.
    read_back: an upstream object that is there and those of its helpers that it names -> specs, as JSON, of
        ModelDeployments that may give it, without `provider.name`, the likeliest first; for `kubefoundry import`.
        They may be guesses: one counts only where its render is what is there. They may state what a render makes
        by itself. Raises NotReadable.
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
    must_recreate: Callable[[Object], bool] = never
    ignored_differences: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    settles: float = 0.0
    documents: tuple[Document, ...] = ()
    named_by_content: tuple[str, ...] = ()
    helper_kinds: tuple[HelperKind, ...] = ()
    operator: Operator | None = None
    pods: Pods | None = None
    read_back: Callable[[Object, Sequence[Object]], Sequence[Object]] | None = None
