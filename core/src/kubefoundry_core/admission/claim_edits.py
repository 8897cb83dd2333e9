"""Edits of `claimTemplate` that an existing claim cannot follow, and those that leave a claim behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubefoundry_core.admission.review import Request
from kubefoundry_sdk._api import conditions, quantity, reasons, validation
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_claims import claim_name, templates
from kubefoundry_sdk._api.untrusted import mappings, part
from kubefoundry_sdk._api.validation import Problem


def problems(request: Request) -> list[Problem]:
    """Return the changes of a template that its claim cannot follow.

    Before the claims exist, any change is allowed. Core also compares the template with the claim, because this
    webhook fails open.
    """
    if request.old is None or not _has_claims(request.old):
        return []
    before, after = _templates(request.old), _templates(request.object)
    return [
        Problem(f"spec.model.storage.volumes[{volume}].claimTemplate.{field}", text)
        for volume in before.keys() & after.keys()
        for field, text in _refused(before[volume], after[volume], claim_name(request.name, volume))
    ]


def warnings(request: Request) -> list[str]:
    """Return a line for each template that leaves the spec, if its claim is still deleted with the model."""
    if request.old is None or not _has_claims(request.old):
        return []
    before, after = _templates(request.old), _templates(request.object)
    return [
        f"PersistentVolumeClaim {claim_name(request.name, volume)} stays, and is still deleted "
        "with the model: to keep it, set whenDeleted to Retain before you remove claimTemplate"
        for volume, template in before.items()
        if volume not in after and template.get("whenDeleted") == "Delete"
    ]


def _has_claims(deployment: Object) -> bool:
    """Check whether core has created the claims of the stored spec."""
    stored = mappings(part(deployment, "status").get("conditions"))
    validated = conditions.find(stored, reasons.VALIDATED) or {}
    return validated.get("status") == "True"


def _templates(deployment: Object) -> dict[str, Mapping[str, Any]]:
    spec = deployment.get("spec") or {}
    return dict(templates(validation.default(spec))) if any(templates(spec)) else {}


def _refused(before: Mapping[str, Any], after: Mapping[str, Any], claim: str) -> Iterator[tuple[str, str]]:
    rename = f"PersistentVolumeClaim {claim}: rename the volume for a new claim"
    for field in ("accessMode", "storageClassName"):
        old, new = before.get(field), after.get(field)
        if old and new and old != new:
            yield field, f"cannot change from {old} to {new} for an existing {rename}"
    old, new = before.get("size"), after["size"]
    if _amount(new) < _amount(old):
        yield "size", f"{new} is less than {old}, and nothing shrinks an existing {rename}"


def _amount(size: object) -> Any:
    try:
        return quantity.stored(size)
    except ValueError:
        # A spec that is older than the rules.
        return 0
