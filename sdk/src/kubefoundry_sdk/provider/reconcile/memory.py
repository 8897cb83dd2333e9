"""What a provider remembers of one ModelDeployment from one turn to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubefoundry_sdk.provider.health.secret import AskedFor
from kubefoundry_sdk.provider.reconcile.failures import Failures
from kubefoundry_sdk.provider.write.manifest import Record
from kubefoundry_sdk.provider.write.version_drift import LastLook
from kubefoundry_sdk.runtime.refusals import Refusal
from kubefoundry_sdk.runtime.repairs import Repairs
from kubefoundry_sdk.runtime.wait import Wait


@dataclass(slots=True)
class Memory:
    """Dropped as a whole with the ModelDeployment. A restart loses it: it spares requests, and times what lasts."""

    failures: Failures = field(default_factory=Failures)
    refusal: Refusal = field(default_factory=Refusal)
    repairs: Repairs = field(default_factory=Repairs)
    last_look: LastLook = field(default_factory=LastLook)
    cleanup: Wait = field(default_factory=Wait)
    """For the clean-up of other providers."""
    deletion: Wait = field(default_factory=Wait)
    """For what its deletion leaves upstream to be gone."""
    tried: str | None = None
    """Digest of the plan that was accepted in a dry run while another provider serves."""
    secret: AskedFor = field(default_factory=AskedFor)
    leaving: tuple[str, Record] | None = None
    """What was applied to an upstream object that is on its way out, and the uid of the ModelDeployment: the next one
    starts from that, so a new object alone brings no other default image."""
    silence: Wait = field(default_factory=Wait)
    """For an operator that looks after the upstream object, of that uid and generation."""
    settling: Wait = field(default_factory=Wait)
    """For an acknowledged change of that object to show in its status."""
