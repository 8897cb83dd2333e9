"""Admission of the deletion of our CRDs, which would delete every ModelDeployment (contract §1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_core.admission.review import Malformed, Review, allowed_unread, refused_unread
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS

SHOWN: Final = 5
"""The most models that a refusal names."""


def validate(review: Any, models: Sequence[str]) -> Review:
    """Refuse the deletion of a KubeFoundry CRD while ModelDeployments exist.

    Args:
        review: The decoded AdmissionReview.
        models: "namespace/name" of the ModelDeployments.

    Raises:
        Malformed: `review` is not an AdmissionReview request with a name.
    """
    try:
        request = review["request"]
        uid, name = str(request["uid"]), str(request["name"])
    except (TypeError, KeyError) as error:
        raise Malformed(f"not an AdmissionReview request with a name: {error!r}") from error
    if not models or name not in (MODEL_DEPLOYMENTS.crd, PROVIDER_CONFIGS.crd):
        return allowed_unread(uid)
    number = "1 ModelDeployment exists" if len(models) == 1 else f"{len(models)} ModelDeployments exist"
    return refused_unread(
        uid,
        f"CustomResourceDefinition {name} is not deleted, because {number} ({first_of(models, SHOWN)}): "
        "delete or eject every ModelDeployment first",
    )
