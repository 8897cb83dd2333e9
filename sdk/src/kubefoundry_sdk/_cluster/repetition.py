"""Bounds writes that repeat themselves, whichever code sends them (contract §4).

Our processes write only when something differs. So the same write to the same object again and again means that
somebody changes the object back, or that admission stores something else. Each accepted write is an event, and each
event would cause the next write.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import Repeated
from kubefoundry_sdk._cluster.rate import Bucket

log = logging.getLogger(__name__)

BURST: Final = 10
"""Equal writes in a row that are sent at once: more than the five reverts of drift (`repairs`)."""

EVERY: Final = 20.0
"""Seconds after which one more equal write is sent."""

REMEMBERED: Final = 4096
"""The most objects whose last write is remembered. The oldest are forgotten, as they were not repeated lately."""

_VOLATILE: Final = ("resourceVersion", "lastTransitionTime")
"""Fields of a body that may differ between equal writes."""


@dataclass(slots=True)
class _Last:
    digest: bytes
    bucket: Bucket
    logged: bool = False


class Repetition:
    """The last write to each object, and how many equal ones may still follow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: OrderedDict[str, _Last] = OrderedDict()

    def admit(self, request: str, parameters: Mapping[str, str] | None, body: Any) -> Callable[[], None]:
        """Return a function to call once the write was accepted: a failed write has its own back-off.

        `request` is method and path. Raise Repeated if the write was accepted too often in a row.
        """
        target = f"{request} {sorted((parameters or {}).items())}"
        if isinstance(body, Mapping):
            meta = body.get("metadata") or {}
            target += f" {meta.get('name') or meta.get('generateName')}"
        now, digest = self._clock(), _digest(body)
        last = self._last.pop(target, None)
        if last is None or last.digest != digest:
            last = _Last(digest, Bucket(BURST, EVERY))
        self._last[target] = last
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        if last.bucket.wait(now):
            error = Repeated(request, BURST, EVERY)
            if not last.logged:
                log.warning("a repeated write was not sent", extra=logs.values(error=str(error)))
            last.logged = True
            raise error
        return last.bucket.take


def _digest(body: Any) -> bytes:
    if isinstance(body, list):
        # The tests of a JSON patch name the state of the object, not the change.
        body = [operation for operation in body if operation.get("op") != "test"]
    text = json.dumps(_stable(body), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


def _stable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _stable(item) for key, item in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [_stable(item) for item in value]
    return value
