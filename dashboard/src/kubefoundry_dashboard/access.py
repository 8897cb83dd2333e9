"""Sessions of viewers, and the credentials of each. The page has no rights of its own at the API server."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from aiohttp import web

from kubefoundry_sdk._cluster.credentials import Credentials

LIFETIME: Final = 8 * 3600.0
"""Seconds until the session of a pasted token expires."""

MOST: Final = 1000
"""Maximum number of sessions in a cluster. A further session evicts the oldest."""

LONGEST: Final = 16384
"""Characters of a token, at most."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A signed-in person.

    Attributes:
        credentials: The viewer's credentials for the API server.
        namespace: The namespace to show if the viewer may not list all namespaces.
        csrf: The token that each form of this viewer carries, so that no other site can send one.
    """

    credentials: Credentials
    namespace: str
    csrf: str


class Access(Protocol):
    """A way to sign in, and its sessions."""

    @property
    def cookie(self) -> str:
        """Return the name of the session cookie."""

    @property
    def secure(self) -> bool:
        """Check whether browsers may send the cookie over TLS only (and to localhost)."""

    @property
    def asks_for(self) -> str:
        """Return the proof that the sign-in page asks for: `link` or `token`."""

    def viewer(self, request: web.Request) -> Viewer | None:
        """Return the viewer who sent the request, or None if nobody is signed in."""

    def of_session(self, session: str) -> Viewer | None:
        """Return the viewer of a session, or None if the session has ended."""

    def candidate(self, given: str) -> Viewer | None:
        """Return the viewer of a token, without a session, so that the API server can check the token first.

        Return None if the text cannot be a token.
        """

    def enter(self, given: str) -> str | None:
        """Start a session for a valid code or token, and return its id. Return None otherwise."""

    def leave(self, session: str) -> None:
        """End a session."""


@dataclass(slots=True)
class Local:
    """Access on the user's machine: the first browser that opens the link gets the kubeconfig's rights."""

    credentials: Credentials
    namespace: str
    port: int
    code: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    secure: bool = False
    asks_for: str = "link"
    _sessions: dict[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        """Return the cookie's name, which differs by port."""
        # Browsers send a cookie to every port of a host, so two pages need two names.
        return f"kubefoundry-{self.port}"

    def viewer(self, request: web.Request) -> Viewer | None:
        """Return the viewer of a request by its cookie, or None without a session."""
        return self.of_session(request.cookies.get(self.cookie, ""))

    def of_session(self, session: str) -> Viewer | None:
        """Return the viewer of a session, or None if the session does not exist."""
        csrf = self._sessions.get(_hashed(session))
        return Viewer(self.credentials, self.namespace, csrf) if csrf else None

    def candidate(self, given: str) -> Viewer | None:
        """Return None, because viewers sign in with a link, not with a token."""
        return None

    def enter(self, given: str) -> str | None:
        """Start a session with the code of the link, which works once.

        Return the session's id, or None for a wrong code.
        """
        if not self.code or not hmac.compare_digest(given.encode(), self.code.encode()):
            return None
        self.code = ""
        session = secrets.token_urlsafe(32)
        self._sessions[_hashed(session)] = secrets.token_urlsafe(32)
        return session

    def leave(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(_hashed(session), None)


@dataclass(slots=True)
class InCluster:
    """Access in a cluster with the viewer's bearer token, which a proxy sends or the viewer pastes once.

    Tokens are kept in memory only.
    """

    credentials: Credentials
    """Address and CA of the API server, without a token."""

    clock: Callable[[], float] = time.monotonic
    cookie: str = "__Host-kubefoundry"
    secure: bool = True
    asks_for: str = "token"
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _sessions: dict[str, tuple[str, float]] = field(default_factory=dict)

    def viewer(self, request: web.Request) -> Viewer | None:
        """Return the viewer of a request by its `Authorization` header, else by its cookie, or None."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _usable(token.strip()):
            return self._viewer(token.strip(), token.strip())
        return self.of_session(request.cookies.get(self.cookie, ""))

    def of_session(self, session: str) -> Viewer | None:
        """Return the viewer of a session, or None if the session does not exist or has expired."""
        token, until = self._sessions.get(_hashed(session), ("", 0.0))
        if not token or self.clock() > until:
            self.leave(session)
            return None
        return self._viewer(token, session)

    def candidate(self, given: str) -> Viewer | None:
        """Return the viewer of a token, without a session, or None if the text cannot be a token."""
        token = given.strip()
        return self._viewer(token, token) if _usable(token) else None

    def enter(self, given: str) -> str | None:
        """Start a session with a token, and return the session's id, or None if the text cannot be a token.

        If `MOST` sessions exist, the oldest one ends.
        """
        token = given.strip()
        if not _usable(token):
            return None
        while len(self._sessions) >= MOST:
            self._sessions.pop(next(iter(self._sessions)))
        session = secrets.token_urlsafe(32)
        self._sessions[_hashed(session)] = token, self.clock() + LIFETIME
        return session

    def leave(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(_hashed(session), None)

    def _viewer(self, token: str, csrf_subject: str) -> Viewer:
        csrf = hmac.new(self._secret, csrf_subject.encode(), hashlib.sha256).hexdigest()
        return Viewer(replace(self.credentials, token=lambda: token), namespace_of(token), csrf)


def _hashed(session: str) -> str:
    """Hash a session id for the lookup, so that the time of a comparison reveals nothing about the secret."""
    return hashlib.sha256(session.encode(errors="replace")).hexdigest()


def _usable(token: str) -> bool:
    """Check whether an HTTP header can carry the token."""
    return 0 < len(token) <= LONGEST and token.isascii() and token.isprintable() and " " not in token


def namespace_of(token: str) -> str:
    """Return the namespace of a ServiceAccount's token, or `default` for any other text.

    The signature is not verified. The namespace is a default for the page, and the API server decides on access.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        parts = str(claims.get("sub", "")).split(":")
    except (IndexError, ValueError, binascii.Error, AttributeError, RecursionError):
        return "default"
    return (
        parts[2] if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"] and parts[2] else "default"
    )
