"""The commands of docs/cli-transcript.md: each of the command line, on a good day and on each bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubefoundry_cli.main import COMMANDS

RENDERED: Final = 14
"""Lines of a long output that are shown."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command line without the program's name. then: what has to hold before the next one, by name."""

    line: str
    then: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """key: which cluster it meets."""

    key: str
    title: str
    says: str
    steps: Sequence[Step]

    @property
    def commands(self) -> set[str]:
        return {step.line.split()[0] for step in self.steps}


ASKED: Final = (
    Step("deploy Qwen/Qwen3-0.6B other --yes"),
    Step("status"),
    Step("status qwen"),
    Step("wait qwen --timeout 5"),
    Step("chat qwen Hello"),
    Step("curl qwen /v1/models"),
    Step("logs qwen"),
    Step("scale qwen 2"),
    Step("explain qwen"),
    Step("plan qwen --set engine.contextLength=16384"),
    Step("compat kuberay --crd ray.io_rayservices.yaml"),
    Step("pause qwen"),
    Step("resume qwen"),
    Step("reselect qwen --yes"),
    Step("refresh qwen --yes"),
    Step("import rayservice/qwen"),
    Step("eject qwen --yes"),
    Step("controller status"),
    Step("controller install --dry-run"),
    Step("controller upgrade"),
    Step("controller uninstall"),
    Step("provider list"),
    Step("provider install kaito --dry-run"),
    Step("provider uninstall kaito"),
    Step("doctor"),
    Step("doctor qwen"),
    Step("version"),
)
"""Every command that asks a cluster, for days on which none of them changes anything."""

OFFLINE: Final = (
    Step("render -f qwen.yaml --provider kuberay --crd ray.io_rayservices.yaml"),
    Step("version --client"),
    Step("images --registry registry.example.com/kubefoundry"),
    Step("completion bash"),
    Step("provider new acme"),
    Step("provider manifest kuberay --image registry.example.com/kubefoundry/provider-kuberay:0.2.0"),
    Step("start --port 0"),
)

GOOD: Final = Day(
    "good",
    "A good day",
    "Core, selector and four providers run, with KAITO, Dynamo and KubeRay (simulated).",
    (
        Step("deploy Qwen/Qwen3-0.6B qwen --gpus 1 --provider kuberay"),
        Step("deploy Qwen/Qwen3-0.6B qwen --gpus 1 --provider kuberay --yes", "running"),
        Step("wait qwen", "pods"),
        Step("doctor"),
        Step("doctor qwen"),
        Step("version"),
        Step("controller status"),
        Step("controller uninstall"),
        Step("provider list"),
        Step("provider list -o wide"),
        Step("provider install kaito --dry-run"),
        Step("provider uninstall kuberay"),
        Step("status"),
        Step("status -o name"),
        Step("status qwen"),
        Step("status --watch"),
        Step("logs qwen"),
        Step("logs qwen --follow --role head --tail 1"),
        Step("logs qwen --role decode"),
        Step("curl qwen /v1/models"),
        Step("chat qwen Say hello."),
        Step("explain qwen"),
        Step("plan qwen --set engine.contextLength=16384 --server"),
        Step("compat kuberay --crd ray.io_rayservices.yaml"),
        Step("scale qwen 2", "running"),
        Step("pause qwen"),
        Step("resume qwen", "running"),
        Step("reselect qwen --yes", "running"),
        Step("refresh qwen --yes", "running"),
        Step("eject qwen --yes", "gone"),
        Step("import rayservice/qwen --yes", "running"),
        *OFFLINE,
    ),
)

NEW: Final = Day(
    "new",
    "The first day",
    "A new cluster on which nobody has installed anything. No node runs pods, so nothing gets ready.",
    (
        Step("controller install --registry registry.example.com/kubefoundry"),
        Step("controller install --registry registry.example.com/kubefoundry --yes"),
        Step("controller upgrade --registry registry.example.com/kubefoundry --yes"),
        Step("provider install kuberay --registry registry.example.com/kubefoundry --yes"),
        Step("controller status"),
        Step("provider list"),
        Step("doctor"),
        Step("provider uninstall kuberay --yes"),
        Step("controller uninstall --crds --yes"),
    ),
)

BAD: Final = (
    Day(
        "none",
        "No cluster",
        "Nothing answers at the kubeconfig's address. What needs no cluster works.",
        (*ASKED, OFFLINE[0], OFFLINE[1], Step("start --port 0")),
    ),
    Day(
        "absent",
        "KubeFoundry is not installed",
        "The API server serves nothing of `kubefoundry.ai`, and KubeRay is not there either.",
        ASKED,
    ),
    Day(
        "old",
        "An old API server",
        "It says that it is Kubernetes 1.25; 1.26 is the oldest supported. Nothing is installed there.",
        ASKED,
    ),
    Day("forbidden", "Without permission", "The user has no rights in this namespace.", ASKED),
    Day(
        "broken",
        "An upstream that is half broken",
        "A model fails in Ray, and the CRD of RayServices has lost `serveConfigV2`.",
        (
            Step("status"),
            Step("status qwen"),
            Step("wait qwen --timeout 5"),
            Step("curl qwen"),
            Step("chat qwen Hello"),
            Step("logs qwen"),
            Step("explain qwen"),
            Step("plan qwen --set engine.contextLength=16384"),
            Step("compat kuberay --crd broken.yaml"),
            Step("render -f qwen.yaml --provider kuberay --crd broken.yaml"),
            Step("import rayservice/qwen"),
            Step("provider list"),
            Step("doctor"),
            Step("doctor qwen"),
        ),
    ),
)

SKEWED: Final = Day(
    "skewed",
    "Another version",
    "Core is of release 0.0.9, and the CRD of ModelDeployments has no `spec.engine.contextLength` yet.",
    (
        Step("controller status"),
        Step("doctor"),
    ),
)

EVERY: Final = frozenset(COMMANDS)
"""What the good day has to show."""
