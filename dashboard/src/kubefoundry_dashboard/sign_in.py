"""Sign in by the printed link or with a token, and sign out."""

from __future__ import annotations

from aiohttp import web

from kubefoundry_dashboard.access import Access, Viewer
from kubefoundry_dashboard.page import ACCESS, page
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may

routes = web.RouteTableDef()


def by_link(request: web.Request) -> web.Response:
    """Start a session with the code of `/?code=…`."""
    access = request.app[ACCESS]
    session = access.enter(request.query["code"]) if access.asks_for == "link" else None
    if session is None:
        return page(
            request, "sign_in.html", status=401, asks_for=access.asks_for, wrong="This link has been used."
        )
    return _welcome(request, access, session)


@routes.post("/sign-in")
async def with_token(request: web.Request) -> web.Response:
    """Sign in with a pasted token that the API server accepts; else show the form again with the reason."""
    access = request.app[ACCESS]
    token = str((await request.post()).get("token", ""))
    viewer = access.candidate(token)
    wrong = "That is not a token." if viewer is None else await _refusal(viewer)
    session = None if wrong else access.enter(token)
    if session is None:
        return page(request, "sign_in.html", status=401, asks_for=access.asks_for, wrong=wrong)
    return _welcome(request, access, session)


@routes.post("/sign-out")
async def sign_out(request: web.Request) -> web.Response:
    """End the session and delete its cookie."""
    access = request.app[ACCESS]
    access.leave(request.cookies.get(access.cookie, ""))
    response = page(request, "sign_in.html", asks_for=access.asks_for, wrong="You are signed out.")
    response.del_cookie(access.cookie, secure=access.secure, httponly=True, samesite="Strict")
    return response


async def _refusal(viewer: Viewer) -> str:
    """Return why the API server does not accept the token, or empty text if it does."""
    async with Client(viewer.credentials, user_agent="kubefoundry-dashboard") as client:
        try:
            await may(client, "list", MODEL_DEPLOYMENTS)
        except ApiError as error:
            return f"The API server does not accept this token ({error.code})."
        except Unreachable as error:
            return f"The API server does not answer: {error}"
    return ""


def _welcome(request: web.Request, access: Access, session: str) -> web.Response:
    """Return a page that sets the cookie and then opens the list of models.

    After a redirect that began with a link on another site, the browser would not send a strict cookie.
    """
    response = page(request, "welcome.html")
    response.headers["Refresh"] = "0; url=/"
    response.set_cookie(
        access.cookie, session, httponly=True, samesite="Strict", secure=access.secure, path="/"
    )
    return response
