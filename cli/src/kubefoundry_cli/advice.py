"""Advise on each condition that is trouble. The commands have the options of the command that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_cli.hint import hint
from kubefoundry_cli.install import bundle
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import HELPER_KINDS
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
        "ProviderNotRegistered": "correct spec.provider.name, or ask an administrator: {provider install PROVIDER}",
        "NoSelector": "name a provider in spec.provider.name, or ask an administrator: {controller install}",
        "NoHealthyProviders": "look at the providers: {provider list}",
        "NoMatchingProvider": "change the spec, or name a provider: {explain NAME} says what each would need",
    },
    PROVIDER_COMPATIBLE: {
        "Unsupported": "change that field, or choose another provider: {explain NAME}",
        "InvalidOverrides": "correct spec.provider.overrides",
    },
    RESOURCE_CREATED: {
        "DryRun": f"read the annotation {names.DRY_RUN_RESULT_ANNOTATION}, then remove {names.DRY_RUN_ANNOTATION}",
        "CRDNotInstalled": "ask an administrator to install the upstream operator: it goes on by itself then",
        "UnsupportedSchema": "ask an administrator to install a release of the upstream system that it supports",
        "ApplyRejected": "do what the API server says: it is tried again at each change, and every 5 minutes",
        "ApplyFailed": "nothing: it is tried again, at the latest in 6 minutes",
        "ProviderError": "report it to the provider's maintainers: {doctor --bundle FILE}",
        "NameConflict": "delete that object, or choose another name for the model",
        "Recreating": "wait until the old object is gone",
        "WaitingForCleanup": "wait: after five minutes it goes on anyway",
        "Terminating": "wait; if it does not go, look at the finalizers of the upstream object",
    },
    READY: {
        "Progressing": "wait, and see how it goes on: {wait NAME}",
        "Failed": "look at its pods and their logs: {status NAME}, {logs NAME}",
        "ScaledToZero": "give it replicas: {scale NAME 1}",
        "Unknown": "look at the upstream object: {status NAME} names it",
        "EndpointUnverified": "look at the pods behind the Service, network policies and model.servedName",
    },
    PROVIDER_HEALTHY: {
        "HeartbeatLost": "ask an administrator to look at its process: changes are not applied until it is back",
        "UpstreamOperatorDown": "ask an administrator to look at the upstream operator",
    },
    STALE_STATUS: {
        "NoUpstreamProgress": "ask an administrator to look at the upstream operator: the status may be out of date",
        "ProviderError": "report it to the provider's maintainers: {doctor --bundle FILE}",
    },
    OVERRIDES_VALID: {"UnknownKeys": "correct the spelling: these keys have no effect"},
}
"""By condition and reason (docs/conditions.md). Commands are in braces: NAME is the model, PROVIDER the one that the
spec names (FILE if it does not come with this command line), KIND that of the object in the message; other words in
capitals are for the user to replace."""

ADOPTION: Final = "; or delete the model, and adopt the object: {import KIND/NAME}"
"""Further advice for a NameConflict with an object of an upstream kind: `import` takes no helpers."""

TAKEN: Final = re.compile(r"([A-Za-z]+) '[a-z0-9.-]+' exists")
"""The beginning of the message of a NameConflict."""

COMMAND: Final = re.compile(r"\{([^}]+)\}")
WORD: Final = re.compile(r"\b(NAME|PROVIDER|KIND)\b")


def is_trouble(condition: Mapping[str, Any]) -> bool:
    """Check whether the condition reports trouble: it is False, or for StaleStatus True."""
    return condition.get("status") == ("True" if condition.get("type") == STALE_STATUS else "False")


def advice(
    condition: Mapping[str, Any], name: str, provider: str | None = None, namespace: str | None = None
) -> str:
    """Return the advice for a condition that is trouble.

    Args:
        condition: The condition.
        name: The model's name.
        provider: The provider that the spec names.
        namespace: The model's namespace.
    """
    template = ADVICE.get(str(condition.get("type")), {}).get(str(condition.get("reason")), UNREPORTED)
    bundled = provider in bundle.providers() if provider else True
    values = {"NAME": name, "PROVIDER": (provider or "PROVIDER") if bundled else "FILE", "KIND": "KIND"}
    if condition.get("reason") == "NameConflict":
        taken = TAKEN.match(str(condition.get("message")))
        if taken is not None and taken[1] not in HELPER_KINDS:
            template += ADOPTION
            values["KIND"] = taken[1].lower()

    def command(match: re.Match[str]) -> str:
        return hint(WORD.sub(lambda word: values[word[0]], match[1]), namespace)

    return COMMAND.sub(command, template)
