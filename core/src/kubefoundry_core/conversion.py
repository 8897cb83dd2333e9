"""Converts our objects between the versions of the API (ConversionReview of apiextensions.k8s.io/v1).

Off by default: today's versions have the same fields, and the CRDs have the strategy None. `manifests/conversion`
sends conversions to core, for the release that renames a field. Then a Fields of its own replaces UNCHANGED in
CONVERSIONS.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_core.admission.review import Malformed, Review
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.foreign_json import decode, encode, set_aside
from kubefoundry_sdk._api.kinds import Object

PATH: Final = "/convert"
SERVICE: Final = "kubefoundry-conversion"
"""The Service that `manifests/conversion` names in the CRDs. It also leads to replicas that are not ready: core is
not ready before it has listed the ModelDeployments, and at a version that is not stored, the list needs core."""

Convert = Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a version, compared with those of `names.VERSION`.

    The API server converts before it validates, so both functions accept values of any type. They change no argument,
    keep each value that they do not move, and undo each other for every object that the schemas admit.

    Attributes:
        to_common: Returns an object of the version with the fields of `names.VERSION`.
        from_common: The inverse.
    """

    to_common: Convert
    from_common: Convert


UNCHANGED: Final = Fields(lambda obj: obj, lambda obj: obj)

Conversions = Mapping[str, Mapping[str, Fields]]
"""Kind -> apiVersion -> fields."""

CONVERSIONS: Final[Conversions] = {
    kind: dict.fromkeys(names.API_VERSIONS, UNCHANGED)
    for kind in (names.MODEL_DEPLOYMENT, names.PROVIDER_CONFIG)
}


def answer(body: bytes, conversions: Conversions = CONVERSIONS) -> bytes:
    """Return the answer to a review.

    A part that is nested too deep to be parsed is returned as it is. A refusal would fail each list of the whole
    cluster at that version, because of one object.

    Raises:
        ValueError: The bytes are not JSON, or not a ConversionReview request (Malformed).
    """
    mark = secrets.token_hex(16)
    text, parts = set_aside(body, mark)
    converted = encode(convert(decode(text), conversions))
    return re.sub(rb'"%s(\d+)"' % mark.encode(), lambda match: parts[int(match[1])], converted)


def convert(review: Any, conversions: Conversions) -> Review:
    """Return the answer to a decoded review: all objects at the requested version, or the reason of a failure.

    Raises:
        Malformed: `review` is not a ConversionReview request.
    """
    try:
        request = review["request"]
        uid, version = request["uid"], request["desiredAPIVersion"]
        converted = [_converted(obj, version, conversions) for obj in request["objects"]]
        response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": converted}
    except _Unsupported as error:
        response = {"uid": uid, "result": {"status": "Failure", "message": str(error)}}
    except (TypeError, KeyError, AttributeError) as error:
        raise Malformed(f"not a ConversionReview request with objects: {error!r}") from error
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}


class _Unsupported(Exception):
    """This core does not know a version; the text says which."""


def _converted(obj: Object, version: str, conversions: Conversions) -> Object:
    kind, before = obj["kind"], obj["apiVersion"]
    fields = conversions.get(kind, {})
    if before not in fields or version not in fields:
        raise _Unsupported(
            f"this kubefoundry-core cannot convert {kind} from {before} to {version}; upgrade kubefoundry-core"
        )
    body = fields[version].from_common(fields[before].to_common(obj))
    # The API server keeps the metadata, except for labels and annotations.
    return {**body, "apiVersion": version, "kind": kind, "metadata": obj["metadata"]}
