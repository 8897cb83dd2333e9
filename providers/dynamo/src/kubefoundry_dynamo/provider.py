"""The Dynamo provider for the SDK's runtime."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.metadata import version
from typing import Final

from kubefoundry_dynamo import operator
from kubefoundry_dynamo.observe import COMPONENT_LABEL, GRAPH_LABEL, SETTLES, observe, workloads
from kubefoundry_dynamo.overrides import Overrides
from kubefoundry_dynamo.probe import UPSTREAM, probe
from kubefoundry_dynamo.read_back import read_back
from kubefoundry_dynamo.recreate import recreate
from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings, add_arguments, from_arguments
from kubefoundry_dynamo.supports import supports
from kubefoundry_sdk import Capabilities, Operator, Pods, Provider, SelectionRule, from_flags

NAME: Final = "dynamo"

CAPABILITIES: Final = Capabilities(
    engines=("vllm", "sglang", "trtllm"),
    serving_modes=("aggregated", "disaggregated"),
    cpu_support=False,
    gpu_support=True,
)

SELECTION_RULES: Final = (
    *(SelectionRule(f"spec.engine.type == '{engine}'", 90) for engine in ("sglang", "trtllm")),
    SelectionRule(
        "spec.serving.mode == 'disaggregated'", 80, "mode=disaggregated → dynamo (best disaggregated support)"
    ),
    SelectionRule(
        "has(spec.resources.gpu) && spec.resources.gpu.count > 0",
        50,
        "default → dynamo (GPU inference default)",
    ),
)
"""contract §5, in its order. The selector adds the reason that Dynamo is the only provider for an engine, because
only the selector knows the other providers."""

PODS: Final = Pods(
    GRAPH_LABEL,
    lambda graph: [graph["metadata"]["name"]],
    makers=workloads,
    creation_events="involvedObject.kind=ReplicaSet,reason=FailedCreate",
    roles=(COMPONENT_LABEL, "nvidia.com/dynamo-sub-component-type"),
)
"""On the pods of every component (sources §2.4)."""


def build(arguments: argparse.Namespace) -> Provider:
    """Return the provider for parsed flags. Raise ValueError for settings that Dynamo cannot have."""
    return provider(from_arguments(arguments))


def with_defaults() -> Provider:
    """Return the provider without flags: the command line renders and explains with it."""
    return provider(Settings())


def provider(settings: Settings) -> Provider:
    """Return the provider for the administrator's settings."""
    return Provider(
        name=NAME,
        title="Dynamo",
        version=version("kubefoundry-provider-dynamo"),
        contract="0.3",
        documentation="https://docs.nvidia.com/dynamo",
        capabilities=CAPABILITIES,
        upstream=UPSTREAM,
        probe=probe,
        supports=partial(supports, settings=settings),
        render=partial(render, settings=settings),
        observe=observe,
        selection_rules=SELECTION_RULES,
        overrides=Overrides,
        recreate=recreate,
        settles=SETTLES,
        # All recorded releases (1.0 and newer) write it.
        names_generation=True,
        operator=Operator(
            operator.DEPLOYMENT,
            (operator.NAMESPACE,),
            operator.read,
            stated={"runtimeVersion": str(settings.runtime_version)} if settings.runtime_version else {},
            lease=operator.LEASE,
        ),
        pods=PODS,
        queued=True,
        read_back=read_back,
        from_flags=partial(from_flags, NAME, build, add_arguments),
    )
