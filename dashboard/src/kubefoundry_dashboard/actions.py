"""What a viewer may do to a model: the small writes of the command line, and its deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.commands import lifecycle
from kubefoundry_cli.edit import Operations, write
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.suspension import check_not_deleted
from kubefoundry_dashboard.live import NAME
from kubefoundry_dashboard.page import WRITES, opened, page
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.permission import may

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True)
class Action:
    """change: None deletes. asks: what is at stake, empty where nothing is."""

    title: str
    change: Callable[[Object, str], Operations] | None
    asks: str = ""

    @property
    def verb(self) -> str:
        """The right that it needs."""
        return "patch" if self.change else "delete"


def _scaled(obj: Object, replicas: str) -> Operations:
    if not replicas.isdecimal() or len(replicas) > 6:
        raise Failure(f"'{replicas}' is not a number of replicas", Exit.USAGE)
    return lifecycle.scaled(obj, int(replicas))


ACTIONS: Final[dict[str, Action]] = {
    "scale": Action("Scale", _scaled),
    "pause": Action("Pause", lambda obj, _: lifecycle.paused(obj)),
    "resume": Action("Resume", lambda obj, _: lifecycle.resumed(obj)),
    "reselect": Action(
        "Reselect",
        lambda obj, _: lifecycle.reselected(obj),
        "Its provider is selected again; a different provider recreates the model.",
    ),
    "refresh": Action(
        "Refresh",
        lambda obj, _: lifecycle.refreshed(obj),
        "It is rendered again with the current defaults, which may restart its pods.",
    ),
    "delete": Action("Delete", None, "The model stops serving, and what was created for it is deleted."),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """The actions as they are shown for a model: name, action, and whether the viewer may."""

    actions: tuple[tuple[str, Action, bool], ...]
    paused: bool


async def offered(request: web.Request, session: Session, obj: Object) -> Offered | None:
    """What the viewer may do, as the API server says; None where the page is read-only."""
    if not request.app[WRITES]:
        return None
    meta, verbs = obj["metadata"], ("patch", "delete")
    try:
        answers = await asyncio.gather(
            *(
                may(session.client, verb, MODEL_DEPLOYMENTS, meta["name"], namespace=meta["namespace"])
                for verb in verbs
            )
        )
    except (ApiError, Unreachable):
        answers = [False, False]
    allowed = dict(zip(verbs, answers, strict=True))
    paused = (meta.get("annotations") or {}).get(names.PAUSED_ANNOTATION) == "true"
    left_out = "pause" if paused else "resume"
    return Offered(
        tuple((name, one, allowed[one.verb]) for name, one in ACTIONS.items() if name != left_out), paused
    )


@routes.post(f"/models/{{namespace:{NAME}}}/{{name:{NAME}}}/{{action:[a-z]+}}")
async def act(request: web.Request) -> web.Response:
    """Acts on that very object, while its spec is what the viewer saw; asks first where something is at stake."""
    name, action = request.match_info["name"], ACTIONS.get(request.match_info["action"])
    if action is None:
        raise web.HTTPNotFound
    if not request.app[WRITES]:
        raise Failure("this page is read-only: start it with --allow-writes", Exit.FORBIDDEN)
    given = await request.post()
    base = f"/models/{request.match_info['namespace']}/{name}"
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await session.model(name)
        meta = obj["metadata"]
        if (given.get("uid"), given.get("generation")) != (meta["uid"], str(meta["generation"])):
            raise Failure(
                f"ModelDeployment '{name}' has changed since the page was read: look at it and try again",
                Exit.CHANGED,
            )
        if action.change is not None:
            check_not_deleted(obj)
        if action.asks and given.get("sure") != "yes":
            values: dict[str, Any] = {"obj": obj, "action": action, "at": request.path, "base": base}
            return page(request, "sure.html", **values)
        if action.change is not None:
            if operations := action.change(obj, str(given.get("replicas", "")).strip()):
                await write(session, obj, operations, f"change ModelDeployment '{name}'")
        else:
            try:
                await session.client.delete(MODEL_DEPLOYMENTS, name, meta["namespace"], uid=meta["uid"])
            except (ApiError, Unreachable) as error:
                raise of(error, f"delete ModelDeployment '{name}'") from error
    raise web.HTTPSeeOther(base)
