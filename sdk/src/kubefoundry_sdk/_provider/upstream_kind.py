"""The upstream system of a provider: its kind, the installed CRD, and its operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubefoundry_sdk._api.kinds import Kind, Object


@dataclass(frozen=True, slots=True)
class UpstreamKind:
    """A kind of the upstream system, without a version: `probe` chooses the version to use.

    Attributes:
        group: The API group.
        plural: The plural, as in URLs.
        kind: The kind.
        version: The version, set for a kind that is part of Kubernetes (`v1` for Deployments). Such a kind has no
            CRD, always exists and is written in this version; the runtime finds our objects by their labels.
    """

    group: str
    plural: str
    kind: str
    version: str | None = None

    @property
    def crd(self) -> str:
        """Return the name of the CustomResourceDefinition that serves the kind."""
        return f"{self.plural}.{self.group}"

    def reporter(self, title: str) -> str:
        """Return who writes the status of the objects, for messages.

        Args:
            title: The name of the upstream (`Provider.title`).
        """
        return f"Kubernetes' {self.kind} controller" if self.version else f"the {title} operator"

    def served(self, api_version: str) -> Kind:
        """Return the kind as served at `group/version`."""
        version = api_version.rpartition("/")[2]
        return Kind(self.group, version, self.plural, self.kind, built_in=self.version is not None)

    @property
    def schema(self) -> Schema | None:
        """The schema of a kind that is part of Kubernetes; None for a kind with a CRD, which `probe` reads."""
        return None if self.version is None else Schema(f"{self.group}/{self.version}")


@dataclass(frozen=True, slots=True)
class Schema:
    """The result of `probe` for an installed CRD that the provider supports.

    Attributes:
        api_version: The `group/version` to write and read through (the storage version where the provider knows
            it, contract §4.10).
        features: The provider's own names for the optional fields that this CRD has.
        lost: Requests of a ModelDeployment that need a newer CRD, a few words each.
        discovered: Settings read from the upstream operator's Deployment (`Operator.read`); the runtime adds them.
    """

    api_version: str
    features: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()
    discovered: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class UnsupportedSchema:
    """The installed CRD lacks fields or versions that the provider needs; `missing` lists them."""

    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """The upstream operator: evidence that it is up, and settings that its CRD does not show.

    Attributes:
        deployment: The name of its Deployment in the upstream's documentation.
        namespaces: The namespaces into which that documentation installs it. Other namespaces count only if an
            administrator names or labels them.
        lease: The name of its leader election Lease, in the same namespaces; None if it has no Lease.
        read: Returns the settings that the Deployment (JSON) shows, by name. None if no setting can be read.
        stated: Settings that an administrator passed as flags. They take precedence over settings that are read.
    """

    deployment: str
    namespaces: tuple[str, ...]
    read: Callable[[Object], Mapping[str, str]] | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    lease: str | None = None


def always_there(crd: Object) -> Schema | UnsupportedSchema:
    """Raise an error: the `probe` of a kind that is part of Kubernetes is never called."""
    raise LookupError("a kind that is part of Kubernetes has no CRD to probe")
