"""A provider's memory of one ModelDeployment between reconciles."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from kubefoundry_sdk._cluster.rate import Bucket
from kubefoundry_sdk._provider.health.pod_causes import Creations
from kubefoundry_sdk._provider.health.references import Lookup
from kubefoundry_sdk._provider.health.steadiness import Steadiness
from kubefoundry_sdk._provider.reconcile import pace
from kubefoundry_sdk._provider.reconcile.failures import Failures, Removal
from kubefoundry_sdk._provider.reconcile.reported_generation import Generations
from kubefoundry_sdk._provider.write.admission import Admission
from kubefoundry_sdk._provider.write.helpers import Mark
from kubefoundry_sdk._provider.write.manifest import Record
from kubefoundry_sdk._provider.write.version_drift import LastComparison
from kubefoundry_sdk._runtime.refusals import Refusal
from kubefoundry_sdk._runtime.repairs import Repairs
from kubefoundry_sdk._runtime.wait import Wait


@dataclass(slots=True)
class Starts:
    """The applies of the upstream object that begin a start, by their times.

    Attributes:
        begun: The apply whose start this process has seen.
        served: The apply after which the model has served, so that no start follows.
        ended: When this process first saw that the newest spec serves since `begun`.
    """

    begun: str | None = None
    served: str | None = None
    ended: datetime | None = None

    def begin(self, applied: str | None) -> None:
        """Begin the start of an apply."""
        self.begun, self.ended = applied, None


@dataclass(slots=True)
class Memory:
    """The memory of a ModelDeployment, which is dropped with it.

    A restart loses it. It saves requests, measures durations, and recognizes objects that have lost our marks.
    """

    failures: Failures = field(default_factory=Failures)
    refusal: Refusal = field(default_factory=Refusal)
    repairs: Repairs = field(default_factory=Repairs)
    admission: Admission = field(default_factory=Admission)
    finalizer: Refusal = field(default_factory=Refusal)
    """The refusal of our fields on the ModelDeployment."""
    held: str | None = None
    """Digest of those fields as they were stored last."""
    restored: Repairs = field(default_factory=Repairs)
    """The times at which those fields were stored again because somebody had removed them."""
    last_comparison: LastComparison = field(default_factory=LastComparison)
    cleanup: Wait = field(default_factory=Wait)
    """The wait for other providers to clean up."""
    deletion: Wait = field(default_factory=Wait)
    """The wait for the upstream objects of a deletion to be gone."""
    is_returned: bool = False
    """Whether another provider was selected while this one held the model, and the status may name its engine."""
    collection: Wait = field(default_factory=Wait)
    """The wait for the garbage collector to delete the objects of an earlier ModelDeployment."""
    removal: Removal = field(default_factory=Removal)
    cleaned: set[Mark] = field(default_factory=set)
    """The objects that we have deleted, or that a deletion has seen: they are really gone once no store has them."""
    is_orphaning: bool = False
    """Whether the deletion leaves the objects on purpose."""
    accepted_digest: str | None = None
    """Digest of the plan that a dry run accepted while another provider serves."""
    secret: Lookup = field(default_factory=Lookup)
    config_map: Lookup = field(default_factory=Lookup)
    deleted_record: tuple[str, Record] | None = None
    """The record of an upstream object that is being deleted, and the uid of the ModelDeployment. The next object
    starts from it, so that recreating alone does not change a default image."""
    steadiness: Steadiness = field(default_factory=Steadiness)
    silence: Wait = field(default_factory=Wait)
    """The wait for an operator to act on the upstream object of that uid and generation."""
    generations: Generations = field(default_factory=Generations)
    starts: Starts = field(default_factory=Starts)
    status_writes: Bucket = field(default_factory=lambda: Bucket(pace.BURST, pace.EVERY))
    """Bounds the writes of its status."""
    drift: str = ""
    """The fields that others changed, as the last plan found them; empty once they are reverted."""
    altered: str = ""
    """The values that admission changed, as the last complete write found them, in one clause."""
    unchecked: str | None = None
    """The uid of an upstream object whose record was lost before an edit; None until the last message was read."""
    additions: str = ""
    """The clause about fields of others in the last report, so that one Event names them."""
    pod_creations: Creations = field(default_factory=Creations)
