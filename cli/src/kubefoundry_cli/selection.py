"""Which provider the selector takes: its own functions, with the refusals that it would hear in a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubefoundry_cli import upstream
from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.reasons import PROVIDER_SELECTED
from kubefoundry_sdk.provider.contract import Provider as Package
from kubefoundry_selector.candidate import Provider, Request, request
from kubefoundry_selector.decision import OURS
from kubefoundry_selector.memory import recall
from kubefoundry_selector.select import Decision, select


@dataclass(frozen=True, slots=True)
class Stored:
    """The selection in the status. left_out: providers that refused this generation before it."""

    provider: str
    reason: str
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        left_out = (
            f" (left out, because they refused it: {', '.join(self.left_out)})" if self.left_out else ""
        )
        return f"{self.provider} is selected: {self.reason or 'its status gives no reason'}{left_out}"


def stored(obj: Object) -> Stored | None:
    """What the cluster has selected for this very generation of the spec; None where it has not, or not yet."""
    status, found = obj.get("status") or {}, _condition(obj)
    name = (status.get("provider") or {}).get("name")
    if not name or not found:
        return None
    ours = found.get("reason") in OURS
    _, memory = recall(str(found.get("message") or "") if ours else "")
    return Stored(str(name), str((status.get("provider") or {}).get("selectedReason") or ""), memory.left_out)


def pending(obj: Object) -> str | None:
    """Why the selector has selected none for this very generation of the spec, or what it waits for; None where it
    has selected one, or has not looked yet. Only the selector knows how long a provider has been down."""
    found = _condition(obj)
    if found.get("status") != "False" or found.get("reason") not in OURS:
        return None
    return recall(str(found.get("message") or ""))[0] or None


def _condition(obj: Object) -> Mapping[str, Any]:
    """`ProviderSelected` of this generation, empty where there is none. obj: also one that is not stored."""
    found = find((obj.get("status") or {}).get("conditions"), PROVIDER_SELECTED) or {}
    current = found.get("observedGeneration") == obj["metadata"].get("generation", 0)
    return found if current else {}


def asked(
    obj: Object,
    registered: Sequence[Provider],
    packages: Mapping[str, Package],
    left_out: Sequence[str] = (),
) -> Request:
    """The request as the selector has it in the end: one provider after another that it selects and that refuses is
    left out, as its package says. A provider without a package here is taken to accept. obj: valid, with defaults.

    left_out: providers that are known to have refused it.
    """
    said = {name: _refusal(packages.get(name), obj) for name in left_out}
    while True:
        made = request(obj, said)
        chosen = select(made, registered).provider
        refusal = _refusal(packages.get(chosen or ""), obj)
        if chosen is None or not refusal:
            return made
        said[chosen] = refusal


def selected(obj: Object, registered: Sequence[Provider], packages: Mapping[str, Package]) -> Decision:
    """The decision in the end, see `asked`."""
    return select(asked(obj, registered, packages), registered)


def _refusal(package: Package | None, obj: Object) -> str:
    """Why it would refuse, empty where it would not or is not there to ask."""
    return "; ".join(upstream.problems(package, obj, None)) if package else ""
