"""From the bytes of a review to its answer, even if they cannot be parsed into objects.

The webhooks fail open, so without a valid answer an unreadable object would be admitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_core.admission.review import Malformed, Review, allowed_unread, refused_unread
from kubefoundry_sdk.api.foreign_json import decode

Judge = Callable[[Any], Review]
"""From a parsed review to the answer. Raises Malformed."""

MOST: Final = 100_000
"""Maps and lists in a review. Each takes 2 bytes to write and about 90 to hold, and is held twice while defaults are
added: 3 MiB of nothing else would be 260 MiB. Brackets in strings count, too."""

_HEAD: Final = re.compile(
    rb'\s*\{"kind":"AdmissionReview","apiVersion":"[^"]*","request":\{"uid":"([^"\\]{1,64})"'
)
"""How every API server begins a review: its fields in the order of the Go struct (k8s.io/api admission/v1)."""

_DELETION: Final = b'"deletionTimestamp":"'


def answered(body: bytes, judge: Judge) -> Review:
    """Return the judge's answer, or a refusal if the review holds too much to be judged.

    A review that reports a deletion is admitted unread, because its finalizers must be removable. Writing that word
    into a spec gains nothing: the controller validates every object again.

    Raises:
        ValueError: The bytes are not a review (Malformed among them).
    """
    if body.count(b"{") + body.count(b"[") > MOST:
        return _unread(body, f"it holds more than {MOST} maps and lists")
    # Anything nested deeper than we read is cut; the rule for a spec's depth then refuses the ModelDeployment.
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
