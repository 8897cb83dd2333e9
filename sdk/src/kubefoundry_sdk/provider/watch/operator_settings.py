"""Settings that the upstream operator's Deployment tells, where the CRD does not show them.

The Deployment is watched for that and for whether the operator is up (`upstream_operator`); nothing is asked in a
reconcile. What was read stays when the Deployment goes: an operator that is being upgraded still does what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from kubefoundry_sdk.api.conditions import Condition
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.reasons import SETTINGS_DISCOVERED
from kubefoundry_sdk.provider.contract import Operator


class OperatorSettings:
    """`changed` is called when `values` change, and once they are known.

    Operators in several namespaces count where they agree.
    """

    def __init__(self, operator: Operator, changed: Callable[[], None]) -> None:
        self._operator = operator
        self._changed = changed
        self.known = False
        """Whether it was looked for, or may not be."""
        self.values: Mapping[str, str] = {}
        """Without those that an administrator states."""
        self.source: str | None = None
        self._where = ""

    def see(self, deployments: Iterable[Object], where: str) -> None:
        """The Deployments that count; none where they may not be seen. where: they were looked for, after "in"."""
        told = {_named(obj): self._read(obj) for obj in deployments}
        first, before = not self.known, self.values
        self._where = where
        self.known = True
        if told:
            self.source = ", ".join(sorted(told))
            self.values = agreed(told.values())
        if first or self.values != before:
            self._changed()

    def _read(self, obj: Object) -> Mapping[str, str]:
        found = self._operator.read(obj) if self._operator.read else {}
        return {name: value for name, value in found.items() if name not in self._operator.stated}

    def condition(self) -> Condition:
        """`SettingsDiscovered`: which settings hold, and where they come from."""
        parts = [f"{_shown(self._operator.stated)}: set by flags"] if self._operator.stated else []
        if self.values:
            parts.append(f"{_shown(self.values)}: read from {self.source}")
        if parts:
            return _condition("True", "Known", "; ".join(parts))
        seen = (
            f"{self.source} does not show the settings"
            if self.source
            else f"no Deployment {self._operator.deployment} found in {self._where}"
        )
        message = f"{seen}; using the provider's defaults: if they are wrong, set the flags"
        return _condition("False", "NotTold", message)


def agreed(told: Collection[Mapping[str, str]]) -> dict[str, str]:
    """What all of them say alike."""
    first, *others = told
    return {name: value for name, value in first.items() if all(it.get(name) == value for it in others)}


def _named(obj: Object) -> str:
    return f"Deployment {obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _shown(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _condition(status: str, reason: str, message: str) -> Condition:
    return {"type": SETTINGS_DISCOVERED, "status": status, "reason": reason, "message": message}
