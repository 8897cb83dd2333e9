"""AdmissionReview (admission.k8s.io/v1): the request, and the three possible answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import Problem
from kubefoundry_sdk._cluster import logs

log = logging.getLogger(__name__)
LINES: Final = 20
"""Refusals that are logged in a second."""
log.addFilter(logs.Limit(LINES))

Review = dict[str, Any]
"""An AdmissionReview as JSON."""


class Malformed(ValueError):
    """The body is not an AdmissionReview request; the text names the missing part."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a review.

    Attributes:
        object: The new state; it has metadata.
        old: The stored state, None on create; it has metadata.
        user: The name of the user who sent the request, empty if the review has none.
        groups: The groups of that user.
    """

    uid: str
    group: str
    kind: str
    name: str
    object: Object
    old: Object | None
    user: str
    groups: tuple[str, ...]

    @property
    def decides_spec(self) -> bool:
        """Check whether rules apply: the spec is new or changed, and the object is not being deleted.

        Other writes are admitted. Otherwise a rule that is newer than the object would block every change of its
        finalizers and labels.
        """
        if self.old is None:
            return True
        if self.object["metadata"].get("deletionTimestamp"):
            return False
        return self.object.get("spec") != self.old.get("spec")


def request_of(review: Any) -> Request:
    """Return the request of a review.

    Raises:
        Malformed: `review` is not an AdmissionReview request with an object.
    """
    try:
        request = review["request"]
        obj, old = request["object"], request.get("oldObject") or None
        meta = obj["metadata"]
        before = meta if old is None else old["metadata"]
        if {type(obj), type(meta), type(before)} != {dict}:
            raise TypeError("an object or its metadata is not a map")
        user = request.get("userInfo") or {}
        return Request(
            uid=request["uid"],
            group=request["kind"]["group"],
            kind=request["kind"]["kind"],
            # For an object with generateName the server has not generated a name yet.
            name=request.get("name") or meta.get("name") or meta.get("generateName", ""),
            object=obj,
            old=old,
            user=str(user.get("username") or ""),
            groups=tuple(map(str, user.get("groups") or ())),
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise Malformed(f"not an AdmissionReview request with an object: {error!r}") from error


def allowed(request: Request, warnings: Sequence[str] = ()) -> Review:
    """Return an admission, with warnings that kubectl shows."""
    return _answer(request.uid, {"allowed": True, **({"warnings": list(warnings)} if warnings else {})})


def allowed_unread(uid: str) -> Review:
    """Return an admission of the request with this uid, without a parsed Request."""
    return _answer(uid, {"allowed": True})


def refused_unread(uid: str, message: str) -> Review:
    """Return a refusal of the request with this uid, without a parsed Request.

    Args:
        uid: The uid of the request.
        message: The reason, and a remedy.
    """
    status = {"status": "Failure", "code": 422, "reason": "Invalid", "message": message}
    return _answer(uid, {"allowed": False, "status": status})


def patched(request: Request, patch: bytes) -> Review:
    """Return an admission with a base64 JSON patch."""
    return _answer(request.uid, {"allowed": True, "patchType": "JSONPatch", "patch": patch.decode("ascii")})


def refused(request: Request, problems: Sequence[Problem]) -> Review:
    """Log and return a refusal with every problem, worded and coded like the API server's own refusals (422 Invalid).

    Source: k8s.io/apimachinery v0.36 api/errors NewInvalid and util/errors Aggregate: one problem is shown as it is,
    several in brackets.
    """
    texts = [f"{problem.path}: {problem.message}" for problem in problems]
    listing = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    with logs.about(request.object["metadata"].get("namespace", ""), request.name):
        logs.read(request.object)
        log.info("refused", extra=logs.values(user=request.user, problem=logs.bounded(listing, logs.SHOWN)))
    status = {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{request.kind} "{request.name}" is invalid: {listing}',
        "details": {
            "name": request.name,
            "group": request.group,
            "kind": request.kind,
            "causes": [
                {"reason": "FieldValueInvalid", "field": problem.path, "message": problem.message}
                for problem in problems
            ],
        },
    }
    return _answer(request.uid, {"allowed": False, "status": status})


def _answer(uid: str, response: dict[str, Any]) -> Review:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, **response},
    }
