"""Statuses that no sound upstream operator writes: plausible fields that contradict each other, and wrong types."""

from __future__ import annotations

from random import Random
from typing import Any, Final

WRONG: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    "",
    "x",
    "1",
    -1,
    1.5,
    2**31,
    2**40,
    [],
    {},
    "True",
    float("nan"),
)
"""Values of a wrong type or size, in the place of any value."""

MESSAGES: Final = ("fine", "bad", "the object has been modified", "x" * 5_000)
READY: Final = {
    "dynamo": (
        "all_resources_are_ready",
        "some_resources_are_not_ready",
        "rolling_update_in_progress",
        "rolling_update_failed",
        "failed_to_reconcile_the_resources",
        "new",
    ),
    "kuberay": (
        "NonZeroServeEndpoints",
        "ZeroServeEndpoints",
        "Initializing",
        "ValidationFailed",
        "InitializingTimeout",
        "New",
    ),
}


class Statuses:
    """Draws statuses for an upstream object of a generation, of which `wanted` replicas are requested."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def draw(self, provider: str, generation: int, wanted: int) -> dict[str, Any]:
        drawn: dict[str, Any] = getattr(self, f"_{provider}")(generation, wanted)
        return drawn

    def _spoil(self, value: Any, share: float = 0.04) -> Any:
        return self.random.choice(WRONG) if self.random.random() < share else value

    def _some(self, fields: dict[str, Any], share: float = 0.05) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if self.random.random() >= share}

    def _generation(self, newest: int) -> Any:
        return self._spoil(self.random.choice((newest,) * 6 + (newest - 1, newest + 1, 99)))

    def _condition(self, type_: str, reasons: tuple[str, ...], usual: str, generation: int) -> Any:
        condition = {
            "type": self._spoil(type_, 0.01),
            "status": self._spoil(self.random.choice((usual,) * 5 + ("True", "False", "Unknown"))),
            "reason": self._spoil(self.random.choice(reasons)),
            "message": self._spoil(self.random.choice(MESSAGES)),
            "observedGeneration": self._generation(generation),
        }
        return self._spoil(self._some(condition, 0.1), 0.01)

    def _count(self, wanted: int) -> Any:
        return self._spoil(self.random.choice((wanted,) * 5 + (0, 1, wanted + 1, wanted + 7)))

    def _pods(self, wanted: int) -> dict[str, Any]:
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        if self.random.random() < 0.5:
            return dict.fromkeys(names, self.random.choice((wanted, wanted, 0, wanted + 1)))
        return self._some({name: self._count(wanted) for name in names}, 0.1)

    def _direct(self, generation: int, wanted: int) -> dict[str, Any]:
        reasons = ("NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded", "FailedCreate")
        conditions = [
            self._condition(type_, reasons, usual, generation)
            for type_, usual in (("Available", "True"), ("Progressing", "True"), ("ReplicaFailure", "False"))
            if self.random.random() < 0.5
        ]
        seen = {"observedGeneration": self._generation(generation), "conditions": self._spoil(conditions)}
        return self._some(seen) | self._pods(wanted)

    def _dynamo(self, generation: int, wanted: int) -> dict[str, Any]:
        states = ("successful",) * 6 + ("pending", "failed", "initializing", "", "degraded")
        phases = ("Completed",) * 4 + ("InProgress", "Pending", "Failed", "Paused")
        counts = {
            "Frontend": self._spoil(self._pods(1), 0.02),
            "VllmWorker": self._spoil(self._pods(wanted), 0.02),
        }
        status = {
            "state": self._spoil(self.random.choice(states)),
            "observedGeneration": self._generation(generation),
            "conditions": self._spoil(
                [
                    self._condition("Ready", READY["dynamo"], "True", generation)
                    for _ in range(self.random.choice((0, 1, 1, 1, 1, 2)))
                ]
            ),
            "rollingUpdate": self._spoil({"phase": self._spoil(self.random.choice(phases))}),
            self.random.choice(("services", "components")): self._spoil(self._some(counts)),
        }
        return self._some(status, 0.1)

    def _kuberay(self, generation: int, wanted: int) -> dict[str, Any]:
        usual = {
            "Ready": "True",
            "UpgradeInProgress": "False",
            "Suspended": "False",
            "RollbackInProgress": "False",
        }
        conditions = [
            self._condition(type_, READY["kuberay"], status, generation)
            for type_, status in usual.items()
            if self.random.random() < (0.9 if type_ == "Ready" else 0.3)
        ]
        services = ("Running",) * 6 + ("", "WaitForServeDeploymentReady", "Daydreaming")
        status = {
            "observedGeneration": self._generation(generation),
            "serviceStatus": self._spoil(self.random.choice(services)),
            "numServeEndpoints": self._count(wanted + 1),
            "conditions": self._spoil(conditions),
            "activeServiceStatus": self._spoil(self._cluster(wanted), 0.02),
        }
        if self.random.random() < 0.15:
            status["pendingServiceStatus"] = self._spoil(self._cluster(wanted))
        return self._some(status)

    def _cluster(self, wanted: int) -> dict[str, Any]:
        states = ("RUNNING",) * 6 + ("DEPLOYING", "DEPLOY_FAILED", "UNHEALTHY", "HIBERNATING")
        engines = ("HEALTHY",) * 4 + ("UPDATING", "UNHEALTHY", "NEW", "UPSCALING")
        engine = self._spoil({"status": self._spoil(self.random.choice(engines)), "message": "y"})
        application = {
            "status": self._spoil(self.random.choice(states)),
            "serveDeploymentStatuses": {"LLMServer:m": engine},
        }
        return self._some(
            {
                "rayClusterName": self._spoil("m-x"),
                "applicationStatuses": self._spoil({"llm": self._spoil(self._some(application))}),
                "rayClusterStatus": self._spoil({"readyWorkerReplicas": self._count(wanted)}),
            }
        )

    def _kaito(self, generation: int, wanted: int) -> dict[str, Any]:
        types = {"InferenceReady": 0.9, "ResourceReady": 0.5, "WorkspaceSucceeded": 0.5}
        reasons = ("Ready", "ContainerCrashLoopBackOff", "WorkspaceInferenceStatusPending", "BenchmarkFailed")
        conditions = [
            self._condition(type_, reasons, "True", generation)
            for type_, share in types.items()
            if self.random.random() < share
        ]
        states = ("Ready", "Ready", "NotReady", "Pending", "New")
        status = {
            "state": self._spoil(self.random.choice(states)),
            "targetNodeCount": self._count(wanted),
            "conditions": self._spoil(conditions),
        }
        return self._some(status)
