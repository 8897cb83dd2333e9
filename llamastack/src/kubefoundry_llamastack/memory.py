"""Remembers facts about one LlamaStackDistribution between reconciles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from kubefoundry_sdk._runtime.refusals import Refusal
from kubefoundry_sdk._runtime.repairs import Repairs
from kubefoundry_sdk._runtime.store import Key

Child = tuple[str, str]
"""Plural of the kind, and name."""


@dataclass(slots=True)
class Applied:
    """The last apply of a Deployment with a service's pods.

    Attributes:
        digest: Digest of the manifest.
        repairs: The times at which it was applied again, because somebody had changed the live object.
    """

    digest: str = ""
    repairs: Repairs = field(default_factory=Repairs)


@dataclass(slots=True)
class Memory:
    """The memory of one CR. It is dropped with the CR.

    A restart loses it without harm: it only saves requests and measures durations.
    """

    refusals: dict[Child, Refusal] = field(default_factory=lambda: defaultdict(Refusal))
    """A refused manifest is not retried at every event."""
    repairs: Repairs = field(default_factory=Repairs)
    bundle: tuple[str, str] | None = None
    """Digest of the certificates' source, and the certificates."""
    applied: str | None = None
    """Digest of the Deployment that was applied last."""
    own_pods: dict[str, Applied] = field(default_factory=lambda: defaultdict(Applied))
    """The last apply by name of the Deployment."""
    kept: set[str] = field(default_factory=set)
    """Providers with a service that is kept for older pods of a stalled rollout."""
    other_operator: str | None = None
    """Value of the refresh annotation when the existing operator was last detected."""


Memories = Callable[[Key], Memory]
"""The memory of the LlamaStackDistribution of that namespace and name."""
