"""From the bytes of a review to its answer, also where they cannot be turned into objects.

The webhooks fail open, so an answer that is none would let in what could not be read.
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
filled in: 3 MiB of nothing else would be 260 MiB. Brackets within texts are counted, too."""

_HEAD: Final = re.compile(
    rb'\s*\{"kind":"AdmissionReview","apiVersion":"[^"]*","request":\{"uid":"([^"\\]{1,64})"'
)
"""How every API server begins a review: its fields in the order of the Go struct (k8s.io/api admission/v1)."""

_DELETION: Final = b'"deletionTimestamp":"'


def answered(body: bytes, judge: Judge) -> Review:
    """The judge's answer; a refusal where the review holds too much to be judged.

    One that reports a deletion is let through unread: its finalizers have to be taken off. Whoever only writes that
    word into a spec gains nothing, the controller judges every object again.

    Raises ValueError (Malformed among them) where the bytes are no review.
    """
    if body.count(b"{") + body.count(b"[") > MOST:
        return _unread(body, f"it holds more than {MOST} maps and lists")
    # What is nested deeper than is read is cut: of a ModelDeployment the rule of a spec's depth then says so.
    return judge(decode(body))


def _unread(body: bytes, why: str) -> Review:
    head = _HEAD.match(body)
    if head is None:
        raise Malformed(f"no AdmissionReview request, and {why}")
    uid = head[1].decode("ascii", "replace")
    if _DELETION in body:
        return allowed_unread(uid)
    return refused_unread(
        uid, f"the object cannot be checked: {why}; simplify it, or delete it and recreate it"
    )
