"""What a turn of a provider works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.provider.contract import Deployment, Provider
from kubefoundry_sdk.provider.health.acknowledgement import Acknowledgements
from kubefoundry_sdk.provider.health.secret import SecretCheck
from kubefoundry_sdk.provider.health.staleness import Silences
from kubefoundry_sdk.provider.health.verification import Verification
from kubefoundry_sdk.provider.reconcile.failures import Failures
from kubefoundry_sdk.provider.watch.pod_creation import CreationWatch
from kubefoundry_sdk.provider.watch.pods import PodWatch
from kubefoundry_sdk.provider.watch.upstream import Upstream
from kubefoundry_sdk.provider.watch.upstream_operator import OperatorWatch
from kubefoundry_sdk.provider.write import apply
from kubefoundry_sdk.provider.write.drift import Repairs
from kubefoundry_sdk.provider.write.helpers import Helpers
from kubefoundry_sdk.provider.write.manifest import Record
from kubefoundry_sdk.provider.write.version_drift import Looks
from kubefoundry_sdk.runtime.recorder import Recorder
from kubefoundry_sdk.runtime.store import Key, Store
from kubefoundry_sdk.runtime.waits import Waits


@dataclass(slots=True)
class Context:
    """What a reconcile works with. `pods` is None for a provider that names none.

    finalizer_timeout: seconds after which the finalizer of a ModelDeployment that was seen to be deleted goes,
        whatever is left; other providers get as long before this one goes on without their clean-up.
    """

    provider: Provider
    client: Client
    recorder: Recorder
    deployments: Store
    upstream: Upstream
    helpers: Helpers
    finalizer_timeout: float
    pods: PodWatch | None
    verification: Verification
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    failures: Failures = field(default_factory=Failures)
    refusals: apply.Refusals = field(default_factory=apply.Refusals)
    repairs: Repairs = field(default_factory=Repairs)
    looks: Looks = field(default_factory=Looks)
    waits: Waits = field(init=False)
    """For the clean-up of other providers."""
    deletions: Waits = field(init=False)
    """For what deletions leave upstream to be gone."""
    tried: dict[Key, str] = field(default_factory=dict)
    """Digests of the plans that were accepted in a dry run while another provider serves."""
    secrets: SecretCheck = field(init=False)
    leaving: dict[Key, tuple[str, Record]] = field(default_factory=dict)
    """What was applied to upstream objects that are on their way out, and the uid of the ModelDeployment: the next
    ones start from that, so a new object alone brings no other default image."""
    silences: Silences = field(default_factory=Silences)
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    creations: CreationWatch | None = None
    """None for a provider that names no Events."""
    operator: OperatorWatch | None = None
    """None for a provider that names no operator."""

    def __post_init__(self) -> None:
        self.waits = Waits(self.finalizer_timeout)
        self.deletions = Waits(self.finalizer_timeout)
        self.secrets = SecretCheck(self.client, self.recorder)

    @property
    def manager(self) -> str:
        return names.provider_manager(self.provider.name)

    def forget(self, key: Key) -> None:
        """The ModelDeployment is gone."""
        self.failures.forget(key)
        self.refusals.forget(key)
        self.repairs.forget(key)
        self.looks.forget(key)
        self.waits.forget(key)
        self.deletions.forget(key)
        self.silences.forget(key)
        self.acknowledgements.forget(key)
        self.secrets.forget(key)
        self.verification.forget(key)
        self.leaving.pop(key, None)
        self.tried.pop(key, None)


def read(live: Object) -> Deployment:
    """The typed view of a stored ModelDeployment. Raises pydantic's ValidationError."""
    meta = live["metadata"]
    return Deployment(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta["generation"],
        spec=ModelDeploymentSpec.model_validate(live.get("spec") or {}),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        raw_spec=live.get("spec") or {},
    )
