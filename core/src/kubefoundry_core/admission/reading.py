"""Answers the bytes of a review, even if they hold too much to be parsed into objects.

The webhooks fail open, so without a valid answer the API server would admit an unreadable object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_core.admission.review import Malformed, Review, allowed_unread, refused_unread
from kubefoundry_sdk._api.foreign_json import decode

Judge = Callable[[Any], Review]
"""Returns the answer to a parsed review. Raises Malformed."""

MOST: Final = 100_000
"""The most maps and lists in a review. Brackets in strings count, too. Each pair takes 2 bytes as JSON and about 90
in memory. While defaults are added, the memory holds the review twice, so 3 MiB of brackets would take 260 MiB."""

_HEAD: Final = re.compile(
    rb'\s*\{"kind":"AdmissionReview","apiVersion":"[^"]*","request":\{"uid":"([^"\\]{1,64})"'
)
"""The beginning of a review by any API server: the fields in the order of the Go struct (k8s.io/api admission/v1)."""

_DELETION: Final = b'"deletionTimestamp":"'


def answered(body: bytes, judge: Judge) -> Review:
    """Return the judge's answer, or a refusal if the review holds too much to be judged.

    Such a review is admitted unread if it has a deletion timestamp, because the finalizers of a deleted object must
    be removable. A user who writes that field into a spec gains nothing: the controller validates every object again.

    Raises:
        ValueError: The bytes are not JSON, or not a review (Malformed).
    """
    if body.count(b"{") + body.count(b"[") > MOST:
        return _unread(body, f"it holds more than {MOST} maps and lists")
    # `decode` cuts values that are nested too deep. The limit of a spec's depth then refuses the ModelDeployment.
    return judge(decode(body))


def _unread(body: bytes, why: str) -> Review:
    head = _HEAD.match(body)
    if head is None:
        raise Malformed(f"not an AdmissionReview request, and {why}")
    uid = head[1].decode("ascii", "replace")
    if _DELETION in body:
        return allowed_unread(uid)
    return refused_unread(
        uid, f"the object cannot be checked: {why}; simplify it, or delete it and recreate it"
    )
