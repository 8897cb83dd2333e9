"""The list of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.commands.status import rows
from kubefoundry_cli.failure import Exit, of
from kubefoundry_dashboard.page import opened, page
from kubefoundry_dashboard.sign_in import by_link
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

routes = web.RouteTableDef()

PHASES: Final = ("Running", "Deploying", "Pending", "Failed", "Terminating")

MOST: Final = 2000
"""Rows of one page: more are found by a filter."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is looked for. namespace: empty for all. text: in any cell."""

    namespace: str = ""
    phase: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        return cls(query.get("namespace", "").strip(), query.get("phase", ""), query.get("q", "").strip())

    def takes(self, row: Mapping[str, str]) -> bool:
        """Whether the row is looked for."""
        words = " ".join(row.values()).lower()
        return self.phase in ("", row["PHASE"]) and all(word in words for word in self.text.lower().split())

    def query(self, **more: str) -> str:
        """As part of a URL."""
        given = {"namespace": self.namespace, "phase": self.phase, "q": self.text, **more}
        return urlencode({key: value for key, value in given.items() if value})


@dataclass(frozen=True, slots=True)
class Listing:
    """namespace: that was listed, empty for all. refused: why not all of them, empty where nothing was refused."""

    objects: Sequence[Object]
    version: str
    namespace: str
    refused: str


def cells(obj: Object) -> dict[str, str]:
    """The row of `kubefoundry status -A -o wide`, by column."""
    head, [row] = rows([obj], everywhere=True, wide=True)
    return dict(zip(head, row, strict=True))


async def listed(session: Session, namespace: str) -> Listing:
    """Models of a namespace; of all that may be listed where none is given. Raises Failure."""
    try:
        objects, version = await session.client.list(MODEL_DEPLOYMENTS, namespace or None)
        return Listing(objects, version, namespace, "")
    except (ApiError, Unreachable) as error:
        failure = of(error, f"list ModelDeployments in {namespace or 'all namespaces'}")
        if namespace or failure.exit_code != Exit.FORBIDDEN:
            raise failure from error
    try:
        objects, version = await session.client.list(MODEL_DEPLOYMENTS, session.namespace)
    except (ApiError, Unreachable) as error:
        second = of(error, f"list ModelDeployments in namespace {session.namespace}")
        if second.exit_code != Exit.FORBIDDEN:
            raise second from error
        return Listing((), "", session.namespace, second.message)
    return Listing(objects, version, session.namespace, failure.message)


@routes.get("/")
async def show(request: web.Request) -> web.Response:
    if "code" in request.query:
        return by_link(request)
    wanted = Filter.of(request.query)
    async with opened(request) as session:
        found = await listed(session, wanted.namespace)
    known = [cells(obj) for obj in found.objects]
    shown = sorted(
        (row for row in known if wanted.takes(row)), key=lambda row: (row["NAMESPACE"], row["NAME"])
    )
    counts = {phase: sum(row["PHASE"] == phase for row in shown) for phase in PHASES}
    values: dict[str, Any] = {
        "wanted": wanted,
        "rows": shown[:MOST],
        "total": len(known),
        "matching": len(shown),
        "counts": counts,
        "namespaces": sorted({row["NAMESPACE"] for row in known}),
        "phases": PHASES,
        "listing": found,
        "stream": "/live/models?"
        + Filter(found.namespace, wanted.phase, wanted.text).query(since=found.version)
        if found.version
        else "",
    }
    return page(request, "models.html", **values)
