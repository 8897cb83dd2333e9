"""A ModelDeployment as the API server returned it: typed access to the parts on which components decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubefoundry_sdk._api import conditions, managed_fields, names
from kubefoundry_sdk._api.conditions import Condition
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part


@dataclass(frozen=True, slots=True)
class LiveModelDeployment:
    """A view of the object: nothing is parsed or copied, and a property reads only its own field.

    A spec may be older than today's rules, so its parts may have any type. The status has the types of its schema.

    Attributes:
        obj: The whole object.
    """

    obj: Object

    @property
    def generation(self) -> int:
        """`metadata.generation`."""
        generation: int = self.obj["metadata"]["generation"]
        return generation

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, empty if there are none."""
        return self.obj["metadata"].get("annotations") or {}

    @property
    def finalizers(self) -> list[str]:
        """The finalizers, empty if there are none."""
        return self.obj["metadata"].get("finalizers") or []

    @property
    def is_deleting(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))

    @property
    def is_paused(self) -> bool:
        """Whether its reconciliation is paused (contract §4.5)."""
        return self.annotations.get(names.PAUSED_ANNOTATION) == "true"

    @property
    def requested_provider(self) -> str | None:
        """`spec.provider.name`, None if the spec names no provider."""
        name = part(self.obj, "spec", "provider").get("name")
        return name if isinstance(name, str) and name else None

    @property
    def requested_engine(self) -> str | None:
        """`spec.engine.type`, None if the spec names no engine."""
        engine = part(self.obj, "spec", "engine").get("type")
        return engine if isinstance(engine, str) and engine else None

    @property
    def status(self) -> Object:
        """The status, empty until somebody has written it."""
        status: Object = self.obj.get("status") or {}
        return status

    @property
    def phase(self) -> str | None:
        """`status.phase`."""
        return self.status.get("phase")

    @property
    def provider(self) -> Mapping[str, Any]:
        """`status.provider`: the chosen provider and its upstream object; empty if none is chosen."""
        return self.status.get("provider") or {}

    @property
    def provider_name(self) -> str | None:
        """The name of the chosen provider, None if none is chosen."""
        return self.provider.get("name") or None

    @property
    def conditions(self) -> Iterable[Mapping[str, Any]]:
        """All conditions, empty if there are none."""
        return self.status.get("conditions") or ()

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type, None if there is none."""
        return conditions.find(self.conditions, type_)

    def is_true(self, type_: str, *, generation: int | None = None) -> bool:
        """Check whether the condition is True, for that generation if one is given."""
        return conditions.is_true(self.conditions, type_, generation=generation)

    def reporters(self) -> set[str]:
        """Return the field managers that own a part of the status."""
        return managed_fields.managers(self.obj, "status")
