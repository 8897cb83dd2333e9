"""The example's provider, with faults that a ModelDeployment or a Widget requests. Run as a program.

A ModelDeployment's env FAULT names the function that raises, or is `name` for a Widget with another name. A Widget's
`status.state` is `Unreadable` to let `observe` raise, or `Impossible` for an observation that cannot be stored.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider import run
from kubefoundry_sdk._provider.contract import Deployment, Observation, Provider, Rendered, Replicas
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_widgets.provider import NAME, provider


def build(options: Namespace) -> Provider:
    """Return the provider, with the faults."""
    sound = provider(options.default_images)

    def supports(deployment: Deployment, schema: Schema | None) -> Sequence[str]:
        fail(deployment, "supports")
        return sound.supports(deployment, schema)

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        fail(deployment, "render")
        rendered = sound.render(deployment, schema)
        if {"name": "FAULT", "value": "name"} in deployment.spec.env:
            rendered.main["metadata"] = {"name": "somebody-elses"}
        return rendered

    def observe(deployment: Deployment, live: Object) -> Observation:
        if (live.get("status") or {}).get("state") == "Unreadable":
            raise KeyError("the part that nobody has ever seen")
        observation = sound.observe(deployment, live)
        if (live.get("status") or {}).get("state") == "Impossible":
            return replace(observation, phase="Running", reason="DeploymentReady", replicas=Replicas(1, 0, 0))
        return observation

    return replace(sound, supports=supports, render=render, observe=observe)


def fail(deployment: Deployment, function: str) -> None:
    """Raise an error if the ModelDeployment requests it for this function."""
    if {"name": "FAULT", "value": function} in deployment.spec.env:
        raise ZeroDivisionError(f"{function} divides by zero " + "over and over " * 100)


if __name__ == "__main__":
    sys.exit(run.run(NAME, build))
