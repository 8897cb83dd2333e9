"""A mutating webhook that changes the status writes of one component, in each of several ways."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk.testing._server.requests import Request, Target
from simulation.runner import PROVIDERS
from simulation.server import Place
from simulation.world import CORE, SELECTOR, component

PROVIDER: Final = component(PROVIDERS[0])
"""The component that serves a model with a GPU."""


class Writer(NamedTuple):
    """A component, its field manager, and the kind whose status it writes."""

    agent: str
    manager: str
    kind: Kind


WRITERS: Final = {
    "core": Writer(CORE, names.CORE_MANAGER, MODEL_DEPLOYMENTS),
    "selector": Writer(SELECTOR, names.SELECTOR_MANAGER, MODEL_DEPLOYMENTS),
    "provider": Writer(PROVIDER, names.provider_manager(PROVIDERS[0]), MODEL_DEPLOYMENTS),
    "registration": Writer(PROVIDER, names.provider_manager(PROVIDERS[0]), PROVIDER_CONFIGS),
    "rules": Writer(SELECTOR, names.SELECTOR_MANAGER, PROVIDER_CONFIGS),
}


def _without_conditions(status: Object, sent: Object) -> None:
    status.pop("conditions", None)


def _without_one_field(status: Object, sent: Object) -> None:
    status.pop(next(iter(sent)), None)


def _without_one_condition(status: Object, sent: Object) -> None:
    if dropped := [item["type"] for item in sent.get("conditions", ())[:1]]:
        status["conditions"] = [item for item in status["conditions"] if item["type"] not in dropped]


def _other_phase(status: Object, sent: Object) -> None:
    if "phase" in sent:
        status["phase"] = "Failed"


def _other_generation(status: Object, sent: Object) -> None:
    if "observedGeneration" in sent:
        status["observedGeneration"] = 7


def _other_condition(status: Object, sent: Object) -> None:
    own = [item["type"] for item in sent.get("conditions", ())]
    for item in status.get("conditions", ()):
        if item["type"] in own:
            item |= {"status": "Unknown", "reason": "Webhook"}


def _other_message(status: Object, sent: Object) -> None:
    if "message" in sent:
        status["message"] = "x"


def _nothing(status: Object, sent: Object) -> None:
    status.clear()


def _without_entry(status: Object, sent: Object) -> None:
    """Leave the status as it is: `Webhook` removes the writer's entry in managedFields."""


CHANGES: Final[dict[str, Callable[[Object, Object], None]]] = {
    "no conditions": _without_conditions,
    "one condition less": _without_one_condition,
    "one field less": _without_one_field,
    "other phase": _other_phase,
    "other generation": _other_generation,
    "other condition": _other_condition,
    "other message": _other_message,
    "no status": _nothing,
    "no entry": _without_entry,
}

OF_PROVIDER: Final = ("other phase", "other generation", "other message")
"""Changes of fields that core sends, too, but only until a provider has reported."""


def is_sent(change: str, writer: str, *, reported: bool = False) -> bool:
    """Check whether the writer sends the field that is changed, before or after a provider has reported."""
    return change not in OF_PROVIDER or writer == "provider" or (writer == "core" and not reported)


@dataclass
class Webhook:
    """Changes the status writes of one writer."""

    writer: Writer
    change: Callable[[Object, Object], None]
    sent: Object = field(default_factory=dict)
    hits: int = 0

    def see(self, request: Request, place: Place, body: Any, before: Object | None) -> Request:
        """Remember the status that the present request sends."""
        self.sent = (body.get("status") or {}) if isinstance(body, dict) else {}
        return request

    def __call__(self, agent: str, target: Target, new: Object) -> Object:
        """Change the object."""
        kind = self.writer.kind
        is_its = agent == self.writer.agent and target.subresource == "status"
        if not is_its or target.resource.storage != (kind.group, kind.plural) or not self.sent:
            return new
        before = copy.deepcopy(new)
        status = new.setdefault("status", {})
        self.change(status, self.sent)
        if not status:
            del new["status"]
        if self.change is _without_entry:
            meta = new["metadata"]
            meta["managedFields"] = [
                entry
                for entry in meta["managedFields"]
                if (entry["manager"], entry.get("subresource")) != (self.writer.manager, "status")
            ]
        self.hits += new != before
        return new
