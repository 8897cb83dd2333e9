"""Replays the selector on a ModelDeployment whose other writers do what the contract has them do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_selector.candidate import Provider, provider
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
    """A provider whose one rule always matches."""
    spec = {
        "capabilities": {"engines": list(engines), "servingModes": ["aggregated"], "gpuSupport": True},
        "selectionRules": [{"condition": "true", "priority": priority, "reason": f"always → {name}"}],
    }
    return provider({"metadata": {"name": name}, "spec": spec, "status": {"ready": True}})


A, B = offered("a", priority=1), offered("b")
B_SGLANG = offered("b", engines=["vllm", "sglang"])


class Deployment:
    """A ModelDeployment and what its writers do to it, each as the contract has it."""

    def __init__(self, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
        self.object: Object = {
            "metadata": {"name": "m", "namespace": "default", "generation": 0, **metadata},
            "status": {},
        }
        self.users_change(spec or GPU_SPEC)

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.object["status"]
        return status

    def condition(self, type_: str) -> dict[str, Any]:
        return next((item for item in self.status.get("conditions", []) if item["type"] == type_), {})

    def put_condition(self, type_: str, **content: Any) -> None:
        kept = [item for item in self.status.get("conditions", []) if item["type"] != type_]
        self.status["conditions"] = [*kept, {"type": type_, **content}]

    def users_change(self, spec: dict[str, Any]) -> None:
        """A new generation, which core finds valid."""
        self.object["spec"] = spec
        self.object["metadata"]["generation"] += 1
        generation = self.object["metadata"]["generation"]
        self.put_condition("Validated", status="True", observedGeneration=generation)

    def annotate(self, value: str | None) -> None:
        self.object["metadata"]["annotations"] = {} if value is None else {"kubefoundry.ai/reselect": value}

    def core_selects(self, name: str) -> None:
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
        self.object["metadata"]["managedFields"] = [
            {
                "manager": f"{name}-provider",
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"ProviderCompatible"}': STATED}}},
            }
        ]

    def turn(self, *registered: Provider) -> str | None:
        """The selector's turn, written; what it announces. A second turn must find nothing left to change."""
        decided = decide(self.object, registered)
        if decided is None:
            return None
        reported = announcement(self.object, decided)
        for condition in decided.get("conditions", []):
            self.put_condition(condition["type"], **{k: v for k, v in condition.items() if k != "type"})
        self.status["provider"] = {**self.status.get("provider", {}), **decided.get("provider", {})}
        self.status["selection"] = decided.get("selection")
        assert decide(self.object, registered) == decided
        assert announcement(self.object, decided) is None
        return f"{reported[0]} {reported[1]}: {reported[2]}" if reported else None

    @property
    def provider(self) -> str | None:
        name: str | None = self.status.get("provider", {}).get("name")
        return name

    @property
    def selected(self) -> tuple[str, str, str]:
        found = self.condition("ProviderSelected")
        return found["status"], found["reason"], found["message"]
