"""The figures of an edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_sdk._api import conditions
from kubefoundry_sdk._api.kinds import Object


@dataclass(slots=True)
class Ledger:
    """The seconds in which Ready was wrong, and the waits for Ready that ended too early.

    Attributes:
        versions: The version that each generation of the ModelDeployment requests.
        old: Seconds in which Ready named the newest generation while another version answered.
        none: Seconds in which Ready was True while no version answered.
        waits: Waits for Ready that ended.
        wrong: Waits for Ready that ended while another version, or none, answered.
    """

    versions: dict[int, str] = field(default_factory=dict)
    old: float = 0.0
    none: float = 0.0
    waits: int = 0
    wrong: int = 0
    _waiting: int = 0

    def edited(self, generation: int, version: str) -> None:
        """Record the version that the newest generation requests, and begin to wait for Ready."""
        self.versions[generation] = version
        self._waiting = generation

    def add(self, seconds: float, model: Object, answering: Set[str]) -> None:
        """Count the seconds in which the model had this state and these versions answered requests."""
        generation = model["metadata"]["generation"]
        if not conditions.is_true(_conditions(model), "Ready") or generation not in self.versions:
            return
        is_newest = names_newest(model)
        is_old = bool(answering - {self.versions[generation]})
        self.none += seconds * (not answering)
        self.old += seconds * (is_newest and is_old)
        if is_newest and self._waiting == generation:
            self._waiting = 0
            self.waits += 1
            self.wrong += is_old or not answering


def names_newest(model: Object) -> bool:
    """Check whether Ready is True for the newest generation, so that `kubectl wait --for=condition=Ready` returns."""
    ready = conditions.find(_conditions(model), "Ready") or {}
    newest = model["metadata"]["generation"]
    return ready.get("status") == "True" and ready.get("observedGeneration", 0) >= newest


def _conditions(model: Object) -> Iterable[Mapping[str, Any]] | None:
    entries: list[dict[str, Any]] | None = (model.get("status") or {}).get("conditions")
    return entries
