"""Define the result of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        state: `good`, `wrong` (somebody has to correct it), `pending` (it continues by itself) or `unknown` (it could
            not be read).
        text: The observation, and what to do.
    """

    state: Literal["good", "wrong", "pending", "unknown"]
    text: str


@dataclass(frozen=True, slots=True)
class Unlisted(Finding):
    """The models could not be listed, so nothing is known about them."""


async def listed(
    session: Session,
    kind: Kind,
    namespace: str | None,
    judge: Callable[[Sequence[Object]], Iterable[Finding]],
    selector: Mapping[str, str] | None = None,
) -> list[Finding]:
    """List the objects of a kind and judge them; report a missing permission as a finding."""
    try:
        objects, _ = await session.client.list(kind, namespace, selector=selector)
    except (ApiError, Unreachable) as error:
        return [Finding("unknown", of(error, f"list {kind.plural}").message)]
    return list(judge(objects))
