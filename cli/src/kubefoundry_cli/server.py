"""Read the API server's release, and check that KubeFoundry supports it."""

from __future__ import annotations

import re
from typing import Any, Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.output import clean
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

OLDEST: Final = (1, 26)
"""The oldest supported release (contract §1). Earlier releases refuse CEL rules in CRDs, or do not know them."""


async def version(session: Session) -> str:
    """Return the API server's release: `v1.34.1`. Raises Failure."""
    try:
        answer = await session.client.read("/version")
    except (ApiError, Unreachable) as error:
        raise of(error, "read the API server's version") from error
    return clean(release(answer))


async def supported(session: Session) -> str:
    """Return the API server's release. Raises Failure if it is too old."""
    current = await version(session)
    if old := too_old(current):
        raise Failure(old)
    return current


def release(answer: Any) -> str:
    """Return the release in the API server's answer, or `unknown`."""
    return str(answer.get("gitVersion") or "unknown") if isinstance(answer, dict) else "unknown"


def too_old(release: str) -> str | None:
    """Return what to do about a release that is too old, None if it is supported or cannot be read."""
    if _numbers(release) is None or at_least(release, OLDEST):
        return None
    oldest = ".".join(map(str, OLDEST))
    return f"Kubernetes {release} is too old: KubeFoundry needs {oldest} or newer; upgrade the cluster first"


def at_least(release: str, oldest: tuple[int, int]) -> bool:
    """Check whether the release is `oldest` or newer. Return False if the release cannot be parsed."""
    numbers = _numbers(release)
    return numbers is not None and numbers >= oldest


def _numbers(release: str) -> tuple[int, int] | None:
    match = re.match(r"v?(\d+)\.(\d+)", release)
    return None if match is None else (int(match[1]), int(match[2]))
