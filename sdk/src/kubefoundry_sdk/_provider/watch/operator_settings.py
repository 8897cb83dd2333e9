"""Settings from the upstream operator's Deployment that the CRD does not show.

The watch that shows whether the operator is up (`upstream_operator`) also shows the settings, so a reconcile sends no
request for them. The values stay when the Deployment is deleted: an operator that is being upgraded still behaves as
before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from kubefoundry_sdk._api.conditions import Condition
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import SETTINGS_DISCOVERED
from kubefoundry_sdk._provider.upstream_kind import Operator


class OperatorSettings:
    """The settings of the upstream operator, as its Deployments show them.

    Of operators in several namespaces, only settings on which all agree are used. `changed` is called when `values`
    change, and once they are known.
    """

    def __init__(self, operator: Operator, changed: Callable[[], None]) -> None:
        self._operator = operator
        self._changed = changed
        self.is_known = False
        """Whether the Deployments have been listed, or the permission is missing."""
        self.values: Mapping[str, str] = {}
        """The settings, without those that an administrator sets by flags."""
        self.source: str | None = None
        self._searched = ""

    def see(self, deployments: Iterable[Object], searched: str) -> None:
        """Read the settings from the operator's Deployments.

        Args:
            deployments: The Deployments that count; none if they may not be read.
            searched: The searched namespaces, as text that follows "in".
        """
        settings_by_source = {_named(obj): self._read(obj) for obj in deployments}
        first, before = not self.is_known, self.values
        self._searched = searched
        self.is_known = True
        if settings_by_source:
            self.source = ", ".join(sorted(settings_by_source))
            self.values = agreed(settings_by_source.values())
        if first or self.values != before:
            self._changed()

    def _read(self, obj: Object) -> Mapping[str, str]:
        settings = self._operator.read(obj) if self._operator.read else {}
        return {name: value for name, value in settings.items() if name not in self._operator.stated}

    def condition(self) -> Condition:
        """Return `SettingsDiscovered`: which settings apply, and where they come from."""
        parts = [f"{_shown(self._operator.stated)}: set by flags"] if self._operator.stated else []
        if self.values:
            parts.append(f"{_shown(self.values)}: read from {self.source}")
        if parts:
            return _condition("True", "Known", "; ".join(parts))
        cause = (
            f"{self.source} does not show the settings"
            if self.source
            else f"no Deployment {self._operator.deployment} found in {self._searched}"
        )
        message = f"{cause}; using the provider's defaults: if they are wrong, set the flags"
        return _condition("False", "NotDiscovered", message)


def agreed(settings: Collection[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings on which all agree. There is at least one mapping."""
    first, *others = settings
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _named(obj: Object) -> str:
    return f"Deployment {obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _shown(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _condition(status: str, reason: str, message: str) -> Condition:
    return {"type": SETTINGS_DISCOVERED, "status": status, "reason": reason, "message": message}
