"""Actions of a viewer on a model: the small writes of the command line, and deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli import operations
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.edit import Operations, write
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.replicas import check_accepted
from kubefoundry_cli.suspension import check_not_deleted
from kubefoundry_dashboard.live import NAME
from kubefoundry_dashboard.page import WRITES, opened, page
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True)
class Action:
    """A button of the model's page.

    Attributes:
        title: The button's label.
        change: Returns the patch for the object and the form's replicas. None deletes the object.
        warning: The consequence that the viewer has to confirm first. Empty if there is none.
        check: Raises Failure if the model's provider would refuse the form's replicas. None if it cannot.
    """

    title: str
    change: Callable[[Object, str], Operations] | None
    warning: str = ""
    check: Callable[[Session, Object, int], Awaitable[None]] | None = None

    @property
    def verb(self) -> str:
        """Return the RBAC verb that the action needs."""
        return "patch" if self.change else "delete"


def _scaled(obj: Object, replicas: str) -> Operations:
    if not replicas.isdecimal() or len(replicas) > 6:
        raise Failure(f"'{replicas}' is not a number of replicas", Exit.USAGE)
    return operations.scaled(obj, int(replicas))


ACTIONS: Final[dict[str, Action]] = {
    "scale": Action("Scale", _scaled, check=check_accepted),
    "pause": Action("Pause", lambda obj, _: operations.paused(obj)),
    "resume": Action("Resume", lambda obj, _: operations.resumed(obj)),
    "reselect": Action(
        "Reselect",
        lambda obj, _: operations.reselected(obj),
        "Its provider is selected again; a different provider recreates the model.",
    ),
    "refresh": Action(
        "Refresh",
        lambda obj, _: operations.refreshed(obj),
        "It is rendered again with the current defaults, which may restart its pods.",
    ),
    "delete": Action("Delete", None, "The model stops serving, and what was created for it is deleted."),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """The actions on the page of one model: name, action, and whether the viewer has the right."""

    actions: tuple[tuple[str, Action, bool], ...]
    paused: bool


async def offer_actions(request: web.Request, session: Session, obj: Object) -> Offered | None:
    """Return the actions with the viewer's rights to them. Return None if the page is read-only."""
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
        # The page shows the model anyway. Buttons that cannot be checked are disabled.
        answers = [False, False]
    allowed = dict(zip(verbs, answers, strict=True))
    paused = (meta.get("annotations") or {}).get(names.PAUSED_ANNOTATION) == "true"
    hidden = "pause" if paused else "resume"
    return Offered(
        tuple((name, action, allowed[action.verb]) for name, action in ACTIONS.items() if name != hidden),
        paused,
    )


@routes.post(f"/models/{{namespace:{NAME}}}/{{name:{NAME}}}/{{action:[a-z]+}}")
async def act(request: web.Request) -> web.Response:
    """Run an action on the object and generation that the viewer saw. Ask for confirmation if it has a warning."""
    name, action = request.match_info["name"], ACTIONS.get(request.match_info["action"])
    if action is None:
        raise web.HTTPNotFound
    if not request.app[WRITES]:
        raise Failure("this page is read-only: start it with --allow-writes", Exit.FORBIDDEN)
    form = await request.post()
    base = f"/models/{request.match_info['namespace']}/{name}"
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await session.model(name)
        meta = obj["metadata"]
        # The name may belong to a new object by now, or the spec may have changed since the viewer decided.
        if (form.get("uid"), form.get("generation")) != (meta["uid"], str(meta["generation"])):
            raise Failure(
                f"ModelDeployment '{name}' has changed since the page was read: look at it and try again",
                Exit.CHANGED,
            )
        if action.change is not None:
            check_not_deleted(obj)
        if action.warning and form.get("sure") != "yes":
            values: dict[str, Any] = {"obj": obj, "action": action, "at": request.path, "base": base}
            return page(request, "sure.html", **values)
        await _run(session, action, obj, str(form.get("replicas", "")).strip())
    raise web.HTTPSeeOther(base)


async def _run(session: Session, action: Action, obj: Object, replicas: str) -> None:
    """Change or delete the ModelDeployment. Raises Failure."""
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    if action.change is None:
        try:
            await session.client.delete(MODEL_DEPLOYMENTS, name, namespace, uid=obj["metadata"]["uid"])
        except (ApiError, Unreachable) as error:
            raise of(error, f"delete ModelDeployment '{name}'") from error
    elif operations := action.change(obj, replicas):
        if action.check is not None:
            await action.check(session, obj, int(replicas))
        await write(session, obj, operations, f"change ModelDeployment '{name}'")
