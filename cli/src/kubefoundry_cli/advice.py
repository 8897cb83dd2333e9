"""Advise on each condition that reports trouble. Suggested commands repeat the options of the running command."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.hint import hint
from kubefoundry_cli.install import bundle
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.reasons import (
    OVERRIDES_VALID,
    PROVIDER_COMPATIBLE,
    PROVIDER_HEALTHY,
    PROVIDER_SELECTED,
    READY,
    RESOURCE_CREATED,
    STALE_STATUS,
    VALIDATED,
)
from kubefoundry_sdk._api.untrusted import mapping

UNREPORTED: Final = "its message says what to do"

ADVICE: Final[dict[str, dict[str, str]]] = {
    VALIDATED: {
        "ValidationFailed": "correct these fields of the spec: until then it is not applied",
        "ClaimNotReady": "it is tried again at each change, and at least every 6 minutes",
        "ImageVolumesUnsupported": "the API server is asked again after a minute",
        "ProviderTooOld": "until then the spec is not applied, and what serves keeps serving",
    },
    PROVIDER_SELECTED: {
        "ProviderNotRegistered": "to install it as an administrator: {provider install PROVIDER}",
        "NoSelector": "name a provider in spec.provider.name, or ask an administrator: {controller install}",
        "NoHealthyProviders": "to see the providers: {provider list}",
        "NoMatchingProvider": "to see the needs of each provider: {explain NAME}",
    },
    PROVIDER_COMPATIBLE: {
        "Unsupported": "to see the needs of other providers: {explain NAME}",
        "InvalidOverrides": "correct spec.provider.overrides",
    },
    RESOURCE_CREATED: {
        "DryRun": f"the result is in annotation {names.DRY_RUN_RESULT_ANNOTATION}",
        "CRDNotInstalled": "it goes on by itself then",
        "UnsupportedSchema": "it goes on by itself then",
        "ApplyRejected": "it is tried again at each change, and at least every 5 minutes",
        "ApplyFailed": "there is nothing to do: the next try is at the latest in 6 minutes",
        "ProviderError": "to collect data for the report: {doctor --bundle FILE}",
        "NameConflict": "",
        "Recreating": "wait until the old object is gone",
        "WaitingForCleanup": "after five minutes it goes on anyway",
        "Terminating": "wait; if it does not go, look at the finalizers of the upstream object",
    },
    READY: {
        "Progressing": "to follow the progress: {wait NAME}",
        "Failed": "to see its pods and their logs: {status NAME}, {logs NAME}",
        "ScaledToZero": "give it replicas: {scale NAME 1}",
        "Unknown": "look at the upstream object: {status NAME} names it",
        "EndpointUnverified": "to see its pods and their logs: {status NAME}, {logs NAME}",
    },
    PROVIDER_HEALTHY: {
        "HeartbeatLost": "to see the last heartbeats: {provider list}",
        "UpstreamOperatorDown": "that takes an administrator",
    },
    STALE_STATUS: {
        "NoUpstreamProgress": "that takes an administrator; the status may be out of date",
        "ProviderError": "to collect data for the report: {doctor --bundle FILE}",
    },
    OVERRIDES_VALID: {"UnknownKeys": "correct the spelling: these keys have no effect"},
}
"""Advice by condition and reason (docs/conditions.md). It adds a command or a fact to the remedy in the message.

Commands are in braces. NAME is the model. PROVIDER is the provider that the spec names, or FILE if that provider does
not come with this command line. KIND is the upstream kind of the chosen provider. The user replaces other words in
capitals.
"""

ADOPTION: Final = (
    "if that is the upstream object, you can also delete the model and adopt the object: {import KIND/NAME}"
)
"""Advice for a NameConflict before the model has an upstream object: `import` takes no helpers."""

COMMAND: Final = re.compile(r"\{([^}]+)\}")
WORD: Final = re.compile(r"\b(NAME|PROVIDER|KIND)\b")


def is_trouble(condition: Mapping[str, Any]) -> bool:
    """Check whether the condition reports trouble: it is False, or for StaleStatus True."""
    return condition.get("status") == ("True" if condition.get("type") == STALE_STATUS else "False")


def advice(condition: Mapping[str, Any], obj: Object) -> str:
    """Return the advice for a condition that is trouble; empty if the message says it all.

    Args:
        condition: The condition.
        obj: The ModelDeployment. Its status may be of any shape: others write there, too.
    """
    meta, requested = obj["metadata"], LiveModelDeployment(obj).requested_provider
    template = ADVICE.get(str(condition.get("type")), {}).get(str(condition.get("reason")), UNREPORTED)
    bundled = requested in bundle.providers() if requested else True
    values = {"NAME": str(meta["name"]), "PROVIDER": (requested or "PROVIDER") if bundled else "FILE"}
    if condition.get("reason") == "NameConflict" and (kind := _adoptable_kind(obj)):
        template = ADOPTION
        values["KIND"] = kind

    def command(match: re.Match[str]) -> str:
        return hint(WORD.sub(lambda word: values[word[0]], match[1]), meta.get("namespace"))

    return COMMAND.sub(command, template)


def _adoptable_kind(obj: Object) -> str | None:
    """Return the kind of the object that the chosen provider wants to create, None if that object exists."""
    provider = mapping(mapping(obj.get("status")).get("provider"))
    # The model has its main object, so the conflict is about the name of a helper.
    if provider.get("resourceName"):
        return None
    return _upstream_kinds().get(str(provider.get("name")))


@functools.cache
def _upstream_kinds() -> Mapping[str, str]:
    """Return the upstream kind of each installed provider package; `import` takes no other kinds."""
    # Imported here: it loads the providers, which a list of healthy models does not need.
    from kubefoundry_cli.providers import installed

    try:
        return {name: provider.upstream.kind.lower() for name, provider in installed().items()}
    except Failure:
        return {}
