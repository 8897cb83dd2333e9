"""The provider for the SDK's runtime: its upstream kind is Kubernetes' own Deployment."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from kubefoundry_direct.names import SELECTED_BY
from kubefoundry_direct.observe import newest_replica_set, observe
from kubefoundry_direct.overrides import Overrides
from kubefoundry_direct.read_back import read_back
from kubefoundry_direct.render import render
from kubefoundry_direct.settings import ON_NVIDIA, Settings, add_arguments, from_arguments
from kubefoundry_direct.supports import TITLE, supports
from kubefoundry_sdk import Capabilities, Pods, Provider, SelectionRule, UpstreamKind, from_flags

NAME: Final = "direct"

UPSTREAM: Final = UpstreamKind("apps", "deployments", "Deployment", version="v1")

CAPABILITIES: Final = Capabilities(
    engines=tuple(ON_NVIDIA), serving_modes=("aggregated",), cpu_support=True, gpu_support=True
)

LAST: Final = -100
"""Below 0, the default priority of a rule, so that an installed inference system takes precedence."""

SELECTION_RULES: Final = (
    SelectionRule(
        "spec.serving.mode == 'aggregated'",
        LAST,
        "no other provider takes it → direct (a Deployment runs the engine's own server)",
    ),
)

SCALED: Final = ("spec.replicas",)
"""A HorizontalPodAutoscaler may write it."""


def _name(live: dict[str, Any]) -> list[str]:
    return [live["metadata"]["name"]]


def _makers(live: dict[str, Any]) -> list[str]:
    """Return only the newest ReplicaSet: errors of an older one, which are corrected, are not reported meanwhile."""
    newest = newest_replica_set(live)
    return [newest] if newest else _name(live)


PODS: Final = Pods(SELECTED_BY, _name, makers=_makers, owned=True)
"""The Deployment's own status reports refused pods (`observe`)."""


def build(arguments: Namespace) -> Provider:
    """Return the provider for parsed flags. Raise ValueError for a default image of an unknown engine."""
    return provider(from_arguments(arguments))


def with_defaults() -> Provider:
    """Return the provider without flags: the command line renders and explains with it."""
    return provider(Settings())


def provider(settings: Settings) -> Provider:
    """Return the provider for the administrator's settings."""
    return Provider(
        name=NAME,
        title=TITLE,
        version=version("kubefoundry-provider-direct"),
        contract="0.3",
        documentation="https://kubernetes.io/docs/concepts/workloads/controllers/deployment/",
        capabilities=CAPABILITIES,
        upstream=UPSTREAM,
        supports=partial(supports, settings=settings),
        render=partial(render, settings=settings),
        observe=observe,
        selection_rules=SELECTION_RULES,
        overrides=Overrides,
        scaled=SCALED,
        helper_kinds=("Service",),
        pods=PODS,
        queued=True,
        read_back=read_back,
        from_flags=partial(from_flags, NAME, build, add_arguments),
    )
