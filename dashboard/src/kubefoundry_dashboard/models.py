"""The page with the list of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.model_table import rows as status_rows
from kubefoundry_dashboard.page import opened, page
from kubefoundry_dashboard.sign_in import by_link
from kubefoundry_sdk._api.kinds import Object

routes = web.RouteTableDef()

PHASES: Final = ("Running", "Deploying", "Pending", "Failed", "Terminating")

MOST: Final = 2000
"""Rows of the page, at most. A filter finds the others."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The viewer's search. Empty fields match all rows. `text` has words that may be in any cell."""

    namespace: str = ""
    phase: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """Read the filter from a URL's query."""
        return cls(query.get("namespace", "").strip(), query.get("phase", ""), query.get("q", "").strip())

    def matches(self, row: Mapping[str, str]) -> bool:
        """Check whether the filter shows the row."""
        words = " ".join(row.values()).lower()
        return self.phase in ("", row["PHASE"]) and all(word in words for word in self.text.lower().split())

    def query(self, **more: str) -> str:
        """Return the filter and `more` as a URL's query, without empty values."""
        parameters = {"namespace": self.namespace, "phase": self.phase, "q": self.text, **more}
        return urlencode({key: value for key, value in parameters.items() if value})


@dataclass(frozen=True, slots=True)
class Listing:
    """The models that the viewer may list.

    Attributes:
        objects: The models.
        version: Resource version of the list, empty if nothing could be listed.
        namespace: The listed namespace, empty for all.
        refused: Why only one namespace is listed, empty if nothing was refused.
    """

    objects: Sequence[Object]
    version: str
    namespace: str
    refused: str


def cells(obj: Object) -> dict[str, str]:
    """Return the model's row of `kubefoundry status -A -o wide`, by column."""
    head, [row] = status_rows([obj], everywhere=True, wide=True)
    return dict(zip(head, row, strict=True))


async def list_models(session: Session, namespace: str) -> Listing:
    """List the models of a namespace, or of all namespaces if it is empty.

    A viewer who may not list all namespaces gets the namespace of the session.

    Raises:
        Failure: The list failed, for another reason than a missing right to all namespaces.
    """
    try:
        objects, version = await session.models(namespace or None)
        return Listing(objects, version, namespace, "")
    except Failure as failure:
        if namespace or failure.exit_code != Exit.FORBIDDEN:
            raise
        refused = failure.message
    try:
        objects, version = await session.models(session.namespace)
    except Failure as failure:
        if failure.exit_code != Exit.FORBIDDEN:
            raise
        return Listing((), "", session.namespace, failure.message)
    return Listing(objects, version, session.namespace, refused)


@routes.get("/")
async def show(request: web.Request) -> web.Response:
    """Show the models that match the filter, and sign in with the code of a link."""
    if "code" in request.query:
        return by_link(request)
    filter_ = Filter.of(request.query)
    async with opened(request) as session:
        listing = await list_models(session, filter_.namespace)
    rows = [cells(obj) for obj in listing.objects]
    matching = sorted(
        (row for row in rows if filter_.matches(row)), key=lambda row: (row["NAMESPACE"], row["NAME"])
    )
    # The stream watches the listed namespace, from the version of the list on.
    watched = Filter(listing.namespace, filter_.phase, filter_.text)
    values: dict[str, Any] = {
        "filter": filter_,
        "rows": matching[:MOST],
        "total": len(rows),
        "matching": len(matching),
        "counts": {phase: sum(row["PHASE"] == phase for row in matching) for phase in PHASES},
        "namespaces": sorted({row["NAMESPACE"] for row in rows}),
        "phases": PHASES,
        "listing": listing,
        "stream": f"/live/models?{watched.query(since=listing.version)}" if listing.version else "",
    }
    return page(request, "models.html", **values)
