"""The changes of all providers that reach the running workload."""

from __future__ import annotations

from typing import Final

from support.changes import dynamo, kaito, kuberay
from support.changes.seen import Change

EVERY: Final[dict[str, list[Change]]] = {
    "kaito": kaito.CHANGES,
    "dynamo": dynamo.CHANGES,
    "kuberay": kuberay.CHANGES,
}
