"""The page with the list of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.health import health_of
from kubefoundry_cli.model_table import rows as status_rows
from kubefoundry_dashboard.page import opened, page
from kubefoundry_dashboard.sign_in import by_link
from kubefoundry_sdk._api.kinds import Object

routes = web.RouteTableDef()

SEVERITIES: Final = ("wrong", "pending", "good")
"""Severities of the verdict, in the default order of the list."""

PHASES: Final = ("Running", "Deploying", "Pending", "Failed", "Terminating")

SORTS: Final = ("name", "provider", "newest")
"""Orders of the list that the viewer may choose. The default order has models that need somebody first."""

REVERSED: Final = str.maketrans("0123456789", "9876543210")
"""Turns the order of timestamps round."""

NOT_SEARCHED: Final = frozenset({"ORDER", "CREATED"})
"""Values of a row that are no cells."""

MOST: Final = 2000
"""Rows of the page, at most. A filter finds the others."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The viewer's search. Empty fields match all rows. `text` has words that may be in any cell."""

    namespace: str = ""
    phase: str = ""
    text: str = ""
    sort: str = ""
    """One of SORTS, empty for the default order."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        """Read the filter from a URL's query."""
        namespace, text, sort = (query.get(key, "").strip() for key in ("namespace", "q", "sort"))
        return cls(namespace, query.get("phase", ""), text, sort if sort in SORTS else "")

    def matches(self, row: Mapping[str, str]) -> bool:
        """Check whether the filter shows the row."""
        words = " ".join(text for name, text in row.items() if name not in NOT_SEARCHED).lower()
        return self.phase in ("", row["PHASE"]) and all(word in words for word in self.text.lower().split())

    def query(self, **more: str) -> str:
        """Return the filter and `more` as a URL's query, without empty values."""
        own = {"namespace": self.namespace, "phase": self.phase, "q": self.text, "sort": self.sort}
        parameters = {**own, **more}
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


def cells(obj: Object, sort: str = "") -> dict[str, str]:
    """Return the model's row of `kubefoundry status -A -o wide`, by column, and its place in the list.

    `ORDER` is a text by which the rows are sorted, on the server and in the browser. `CREATED` is the creation time.
    """
    head, [row] = status_rows([obj], everywhere=True, wide=True)
    by_column = dict(zip(head, row, strict=True))
    created = str(obj["metadata"].get("creationTimestamp") or "")
    name = f"{by_column['NAMESPACE']} {by_column['NAME']}"
    match sort:
        case "name":
            order = name
        case "provider":
            order = f"{by_column['PROVIDER']} {name}"
        case "newest":
            order = f"{created.translate(REVERSED)} {name}"
        case _:
            order = f"{SEVERITIES.index(health_of(obj).severity)} {name}"
    return {**by_column, "ORDER": order, "CREATED": created}


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
    rows = [cells(obj, filter_.sort) for obj in listing.objects]
    matching = sorted((row for row in rows if filter_.matches(row)), key=lambda row: row["ORDER"])
    # The stream watches the listed namespace, from the version of the list on.
    watched = replace(filter_, namespace=listing.namespace)
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
