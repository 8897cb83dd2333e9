"""One model: what keeps it from serving what is asked for, in the order of the components' work, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.hint import hint
from kubefoundry_cli.model import endpoint, ready
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.parts import mapping, mappings
from kubefoundry_sdk.api.reasons import (
    OVERRIDES_VALID,
    PROVIDER_COMPATIBLE,
    PROVIDER_HEALTHY,
    PROVIDER_SELECTED,
    READY,
    RESOURCE_CREATED,
    STALE_STATUS,
    VALIDATED,
)

UNREPORTED: Final = "its message says what to do"

ADVICE: Final[dict[str, dict[str, str]]] = {
    VALIDATED: {"ValidationFailed": "correct these fields of the spec: until then it is not applied"},
    PROVIDER_SELECTED: {
        "ProviderNotRegistered": "correct spec.provider.name, or install that provider: {provider install}",
        "NoSelector": "name a provider in spec.provider.name, or install the selector: {controller install}",
        "NoHealthyProviders": "look at the providers: {provider list}",
        "NoMatchingProvider": "change the spec, or name a provider: {explain NAME} says what each would need",
    },
    PROVIDER_COMPATIBLE: {
        "Unsupported": "change that field, or choose another provider: {explain NAME}",
        "InvalidOverrides": "correct spec.provider.overrides",
    },
    RESOURCE_CREATED: {
        "DryRun": f"read the annotation {names.DRY_RUN_RESULT_ANNOTATION}, then remove {names.DRY_RUN_ANNOTATION}",
        "CRDNotInstalled": "install the upstream operator: it goes on by itself then",
        "UnsupportedSchema": "install a release of the upstream system that the provider supports",
        "ApplyRejected": "do what the API server says: it is tried again at each change, and every 5 minutes",
        "ApplyFailed": "nothing: it is tried again, at the latest in 5 minutes",
        "ProviderError": "report it to the provider's maintainers: {doctor --bundle FILE}",
        "NameConflict": "delete that object, import it ({import}), or choose another name",
        "Recreating": "wait until the old object is gone",
        "WaitingForCleanup": "wait: after five minutes it goes on anyway",
        "Terminating": "wait; if it does not go, look at the finalizers of the upstream object",
    },
    READY: {
        "Progressing": "wait, and see how it goes on: {wait NAME}",
        "Failed": "read the logs of its pods: {logs NAME}",
        "ScaledToZero": "give it replicas: {scale NAME 1}",
        "Unknown": "look at the upstream object: {status NAME} names it",
        "EndpointUnverified": "look at the pods behind the Service, network policies and model.servedName",
    },
    PROVIDER_HEALTHY: {
        "HeartbeatLost": "look at the provider's process: changes are not applied until it is back",
        "UpstreamOperatorDown": "look at the upstream operator",
    },
    STALE_STATUS: {
        "NoUpstreamProgress": "look whether the upstream operator runs: the status may be out of date",
        "ProviderError": "report it to the provider's maintainers: {doctor --bundle FILE}",
    },
    OVERRIDES_VALID: {"UnknownKeys": "correct the spelling: these keys have no effect"},
}
"""What to do about each reason that is trouble, by condition (docs/conditions.md); commands in braces."""

COMMAND: Final = re.compile(r"\{([^}]+)\}")


def judged(obj: Object) -> Iterator[Finding]:
    """Of its own status. What somebody else wrote there may be of any shape."""
    meta, status = obj["metadata"], mapping(obj.get("status"))
    name, conditions = meta["name"], mappings(status.get("conditions"))
    if meta.get("deletionTimestamp"):
        held = ", ".join(map(str, meta.get("finalizers") or ())) or "nothing"
        yield Finding(
            "wrong", f"{name} is being deleted and held by {held}; wait for its provider to clean up"
        )
    if (meta.get("annotations") or {}).get(names.PAUSED_ANNOTATION) == "true":
        yield Finding("wrong", f"{name} is paused, so no change is applied; {hint(f'resume {name}')}")
    if not conditions:
        yield Finding(
            "wrong", f"{name} has no condition: core has not reconciled it; {hint('controller status')}"
        )
        return
    yield from _troubles(name, meta["generation"], conditions)
    where = endpoint(status) if isinstance(status.get("endpoint"), Mapping) else None
    if ready(obj):
        yield Finding("good", f"{name} serves generation {meta['generation']} at {where or 'no endpoint'}")
    elif where:
        yield Finding(
            "wrong",
            f"{name} serves an earlier generation at {where}, not yet generation {meta['generation']}",
        )


def _troubles(name: str, generation: Any, conditions: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    for kind, advice in ADVICE.items():
        found = find(conditions, kind)
        if found is None or found.get("status") != ("True" if kind == STALE_STATUS else "False"):
            continue
        reason = str(found.get("reason"))
        what = COMMAND.sub(
            lambda one: hint(one[1].replace("NAME", name)),
            advice.get(reason, UNREPORTED),
        )
        older = "" if found.get("observedGeneration") == generation else " (of an earlier generation)"
        yield Finding("wrong", f"{kind}: {reason}{older}: {found.get('message') or 'no message'}; {what}")


def of_pods(pods: Sequence[Object]) -> Iterator[Finding]:
    """Pods that are not ready, with what they report."""
    for pod in pods:
        status = mapping(pod.get("status"))
        reasons = [
            f"{mapping(state).get('reason')}: {mapping(state).get('message') or 'no message'}"
            for one in status.get("containerStatuses") or ()
            for state in (
                mapping(mapping(one).get("state")).get("waiting"),
                mapping(mapping(one).get("state")).get("terminated"),
            )
            if state and mapping(state).get("reason") not in (None, "Completed", "ContainerCreating")
        ]
        scheduled = find(mappings(status.get("conditions")), "PodScheduled")
        if scheduled is not None and scheduled.get("status") == "False":
            reasons.append(f"{scheduled.get('reason')}: {scheduled.get('message')}")
        if reasons:
            yield Finding(
                "wrong",
                f"pod {pod['metadata']['name']}: {'; '.join(reasons)}; "
                f"kubectl -n {pod['metadata']['namespace']} describe pod {pod['metadata']['name']}",
            )
