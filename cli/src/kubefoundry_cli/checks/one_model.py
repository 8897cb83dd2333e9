"""Check one model: its verdict, other conditions that report trouble (in reconcile order), and its pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.health import PROGRESS, health_of, troubles
from kubefoundry_cli.hint import kubectl
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import READY
from kubefoundry_sdk._api.untrusted import mapping, mappings, part


def judged(obj: Object) -> Iterator[Finding]:
    """Yield the verdict, then each trouble that it does not mention."""
    health = health_of(obj)
    yield Finding(health.severity, health.text)
    for trouble in troubles(obj, mappings(mapping(obj.get("status")).get("conditions"))):
        # the verdict repeats Ready
        if trouble.type != READY and trouble.message not in health.reason:
            passing = trouble.reason in PROGRESS and health.severity == "pending"
            todo = f"; {trouble.remedy}" if trouble.remedy else ""
            yield Finding("pending" if passing else "wrong", f"{trouble.text}{todo}")


def of_pods(pods: Sequence[Object]) -> Iterator[Finding]:
    """Yield the pods that are not ready, with the reasons that they report."""
    for pod in pods:
        reasons = [*_container_reasons(pod), *_scheduling_reasons(pod)]
        if reasons:
            meta = pod["metadata"]
            yield Finding(
                "wrong",
                f"pod {meta['name']}: {'; '.join(reasons)}; "
                f"{kubectl('describe pod ' + meta['name'], meta['namespace'])}",
            )


def _container_reasons(pod: Object) -> Iterator[str]:
    """Yield why containers wait or have terminated."""
    for container in mapping(pod.get("status")).get("containerStatuses") or ():
        for name in ("waiting", "terminated"):
            state = part(mapping(container), "state", name)
            if state and state.get("reason") not in (None, "Completed", "ContainerCreating"):
                yield f"{state.get('reason')}: {state.get('message') or 'no message'}"


def _scheduling_reasons(pod: Object) -> Iterator[str]:
    scheduled = find(mappings(mapping(pod.get("status")).get("conditions")), "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        yield f"{scheduled.get('reason')}: {scheduled.get('message')}"
