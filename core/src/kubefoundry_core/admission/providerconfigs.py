"""Admission of InferenceProviderConfigs: warnings only (contract §2).

Core never refuses a registration, because a provider that cannot register is worse than a skipped rule. Core does not
parse selection rules. It passes on the selector's verdict about the stored rules.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from pydantic import ValidationError

from kubefoundry_core.admission.review import Malformed, Request, Review, allowed, request_of
from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.modeldeployment import Engine
from kubefoundry_sdk._api.providerconfig import ProviderConfigSpec

ENGINES: Final[tuple[str, ...]] = get_args(Engine)


def validate(review: Any) -> Review:
    """Allow the registration, and warn about problems that keep the provider from being used.

    Raises:
        Malformed: `review` is not an AdmissionReview request with an object.
    """
    request = request_of(review)
    if not request.decides_spec:
        return allowed(request)
    return allowed(request, _warnings(request))


def _warnings(request: Request) -> list[str]:
    raw = request.object.get("spec") or {}
    try:
        spec = ProviderConfigSpec.model_validate(raw)
    except ValidationError as error:
        return [f"spec{_path(item['loc'])}: {item['msg']}" for item in error.errors()]
    warnings = []
    capabilities = spec.capabilities
    for field, empty, lack in (
        ("engines", not capabilities.engines, "no engine"),
        ("servingModes", not capabilities.serving_modes, "no serving mode"),
        ("cpuSupport", not (capabilities.cpu_support or capabilities.gpu_support), "neither CPU nor GPU"),
    ):
        if empty:
            warnings.append(
                f"spec.capabilities.{field}: with {lack} this provider is never selected automatically"
            )
    if unknown := sorted(set(capabilities.engines) - set(ENGINES)):
        warnings.append(
            f"spec.capabilities.engines: no ModelDeployment can request {', '.join(unknown)}; its engines are "
            f"{', '.join(ENGINES)}"
        )
    stored = request.old or {}
    try:
        rules = find((stored.get("status") or {}).get("conditions"), reasons.RULES_VALID) or {}
        unchanged = (stored.get("spec") or {}).get("selectionRules") == raw.get("selectionRules")
    except (AttributeError, TypeError) as error:
        raise Malformed(f"not an InferenceProviderConfig as it is stored: {error!r}") from error
    if unchanged and rules.get("status") == "False":
        warnings.append(f"spec.selectionRules: {rules.get('message', '')}")
    return warnings


def _path(location: tuple[int | str, ...]) -> str:
    """Return a pydantic location in the format of Kubernetes field paths."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
