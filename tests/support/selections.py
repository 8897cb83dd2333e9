"""Run the selector on a ModelDeployment whose other writers are simulated by the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kubefoundry_sdk import cel
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.names import SELECTOR_MANAGER
from kubefoundry_selector.candidate import Provider, SelectionRule, provider
from kubefoundry_selector.decision import announcement, decide

GPU_SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
STATED: dict[str, Any] = {f"f:{field}": {} for field in ("status", "reason", "message", "observedGeneration")}
"""The fields of a condition that its manager owns."""
SGLANG = {**GPU_SPEC, "engine": {"type": "sglang"}}
MORE_GPUS = {**GPU_SPEC, "resources": {"gpu": {"count": 2}}}


def offered(name: str, *, priority: int = 0, engines: Sequence[str] = ("vllm",)) -> Provider:
    """Return a provider with a single rule, which always matches."""
    spec = {
        "capabilities": {"engines": list(engines), "servingModes": ["aggregated"], "gpuSupport": True},
        "selectionRules": [{"condition": "true", "priority": priority, "reason": f"always → {name}"}],
    }
    return provider({"metadata": {"name": name}, "spec": spec, "status": {"ready": True}})


A, B = offered("a", priority=1), offered("b")
B_SGLANG = offered("b", engines=["vllm", "sglang"])


class Deployment:
    """A ModelDeployment, and the writes of its users, of core and of its provider."""

    def __init__(self, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
        self.object: Object = {
            "metadata": {"name": "m", "namespace": "default", "generation": 0, **metadata},
            "status": {},
        }
        self.users_change(spec or GPU_SPEC)

    @property
    def status(self) -> dict[str, Any]:
        """Return the status."""
        status: dict[str, Any] = self.object["status"]
        return status

    def condition(self, type_: str) -> dict[str, Any]:
        """Return the condition with this type, or an empty object."""
        return next((item for item in self.status.get("conditions", []) if item["type"] == type_), {})

    def put_condition(self, type_: str, **content: Any) -> None:
        """Add or replace a condition."""
        others = [item for item in self.status.get("conditions", []) if item["type"] != type_]
        self.status["conditions"] = [*others, {"type": type_, **content}]

    def users_change(self, spec: dict[str, Any]) -> None:
        """Write a spec as a new generation, which core validates."""
        self.object["spec"] = spec
        self.object["metadata"]["generation"] += 1
        generation = self.object["metadata"]["generation"]
        self.put_condition("Validated", status="True", observedGeneration=generation)

    def annotate(self, value: str | None) -> None:
        """Set the annotation that requests a new selection; None removes it."""
        self.object["metadata"]["annotations"] = {} if value is None else {"kubefoundry.ai/reselect": value}

    def core_selects(self, name: str) -> None:
        """Name a provider in the spec, which core writes into the status."""
        self.users_change({**self.object["spec"], "provider": {"name": name}})
        self.status["provider"] = {"name": name, "selectedReason": "explicit provider selection"}
        generation = self.object["metadata"]["generation"]
        self.put_condition(
            "ProviderSelected",
            status="True",
            reason="ExplicitlySelected",
            message="x",
            observedGeneration=generation,
        )

    def provider_refuses(self, name: str, message: str) -> None:
        """Write the provider's refusal of the spec."""
        self.provider_writes(name)
        generation = self.object["metadata"]["generation"]
        self.put_condition(
            "ProviderCompatible",
            status="False",
            reason="Unsupported",
            message=message,
            observedGeneration=generation,
        )

    def provider_writes(self, name: str) -> None:
        """Make the provider the owner of ProviderCompatible."""
        self.object["metadata"]["managedFields"] = [
            {
                "manager": f"{name}-provider",
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {
                    "f:status": {
                        "f:conditions": {'k:{"type":"ProviderCompatible"}': STATED},
                        **(
                            {"f:provider": {"f:engine": {}}}
                            if self.status.get("provider", {}).get("engine")
                            else {}
                        ),
                    }
                },
            }
        ]

    def selector_owns_engine(self, engine: str, before: str | None) -> None:
        """Make the selector an owner of the engine. A provider that applied another one owns it no longer."""
        meta = self.object["metadata"]
        entries = [item for item in meta.get("managedFields", []) if item["manager"] != SELECTOR_MANAGER]
        for item in entries if engine != before else ():
            item["fieldsV1"].get("f:status", {}).pop("f:provider", None)
        fields: dict[str, Any] = {"f:status": {"f:provider": {"f:engine": {}}}}
        own = {"manager": SELECTOR_MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": fields}
        meta["managedFields"] = [*entries, own]

    def turn(self, *registered: Provider) -> str | None:
        """Run the selector, write its decision, and return its Event. Assert that a second run changes nothing."""
        decided = decide(self.object, registered)
        if decided is None:
            return None
        reported = announcement(self.object, decided)
        for condition in decided.get("conditions", []):
            self.put_condition(condition["type"], **{k: v for k, v in condition.items() if k != "type"})
        before = self.status.get("provider", {})
        others = {key: value for key, value in before.items() if key != "engine"}
        if engine := decided.get("provider", {}).get("engine"):
            self.selector_owns_engine(engine, before.get("engine"))
        self.status["provider"] = {**others, **decided.get("provider", {})}
        self.status["selection"] = decided.get("selection")
        assert decide(self.object, registered) == decided
        assert announcement(self.object, decided) is None
        return f"{reported[0]} {reported[1]}: {reported[2]}" if reported else None

    @property
    def provider(self) -> str | None:
        """Return the selected provider."""
        name: str | None = self.status.get("provider", {}).get("name")
        return name

    @property
    def selected(self) -> tuple[str, str, str]:
        """Return status, reason and message of ProviderSelected."""
        condition = self.condition("ProviderSelected")
        return condition["status"], condition["reason"], condition["message"]


def offering(
    name: str, engines: Sequence[str], condition: str = "true", priority: int = 0, **values: Any
) -> Provider:
    """Return a provider with these engines and one rule, which also serves models without a GPU."""
    rule = SelectionRule(0, condition, priority, None, cel.compile(condition))
    return replace(
        offered(name), engines=frozenset(engines), rules=(rule,), contract="0.3", cpu_support=True, **values
    )


def selection(deployment: Deployment) -> tuple[str | None, str | None]:
    """Return the selected provider and engine."""
    chosen = deployment.object["status"].get("provider") or {}
    return chosen.get("name"), chosen.get("engine")


def created(deployment: Deployment) -> None:
    """The selected provider creates its object: its finalizer is there."""
    name, _ = selection(deployment)
    deployment.object["metadata"]["finalizers"] = [f"kubefoundry.ai/{name}-provider"]
