"""Who looks at the page, and with whose rights it asks the API server: never with rights of its own."""

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

from kubefoundry_sdk.cluster.credentials import Credentials

LIFETIME: Final = 8 * 3600.0
"""Seconds after which somebody who pasted a token signs in again."""

MOST: Final = 1000
"""Tokens that are remembered at once; the oldest goes for a new one."""

LONGEST: Final = 16384
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """credentials: whose rights hold. namespace: the one that is shown where all of them may not be listed.

    csrf: what a form has to carry, so that no other site can send it.
    """

    credentials: Credentials
    namespace: str
    csrf: str


class Access(Protocol):
    """How viewers come in."""

    @property
    def cookie(self) -> str:
        """Name of the cookie that holds a session."""

    @property
    def secure(self) -> bool:
        """Whether browsers may send it over TLS only (and to localhost)."""

    @property
    def asks_for(self) -> str:
        """What whoever is not signed in has to give: `link` or `token`."""

    def viewer(self, request: web.Request) -> Viewer | None:
        """Whose request it is, None for somebody who is not signed in."""

    def of_session(self, session: str) -> Viewer | None:
        """Whose session it is, None for one that has ended."""

    def candidate(self, given: str) -> Viewer | None:
        """Whoever has that token, if it is one; nothing is remembered before the API server has taken it."""

    def enter(self, given: str) -> str | None:
        """A new session for a code or a token that is good, else None."""

    def leave(self, session: str) -> None:
        """Ends a session."""


@dataclass(slots=True)
class Local:
    """On one's own machine: the kubeconfig's rights, for whoever opens the link. Its code is good for one browser."""

    credentials: Credentials
    namespace: str
    port: int
    code: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    secure: bool = False
    asks_for: str = "link"
    _sessions: dict[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        # cookies do not tell ports apart
        return f"kubefoundry-{self.port}"

    def viewer(self, request: web.Request) -> Viewer | None:
        return self.of_session(request.cookies.get(self.cookie, ""))

    def of_session(self, session: str) -> Viewer | None:
        csrf = self._sessions.get(_hashed(session))
        return Viewer(self.credentials, self.namespace, csrf) if csrf else None

    def candidate(self, given: str) -> Viewer | None:
        return None

    def enter(self, given: str) -> str | None:
        if not self.code or not hmac.compare_digest(given.encode(), self.code.encode()):
            return None
        self.code = ""
        session = secrets.token_urlsafe(32)
        self._sessions[_hashed(session)] = secrets.token_urlsafe(32)
        return session

    def leave(self, session: str) -> None:
        self._sessions.pop(_hashed(session), None)


@dataclass(slots=True)
class InCluster:
    """In a cluster: the viewer's own bearer token, from a proxy with each request or pasted once; in memory only."""

    credentials: Credentials
    """Of nobody: where the API server is."""

    clock: Callable[[], float] = time.monotonic
    cookie: str = "__Host-kubefoundry"
    secure: bool = True
    asks_for: str = "token"
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _sessions: dict[str, tuple[str, float]] = field(default_factory=dict)

    def viewer(self, request: web.Request) -> Viewer | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _usable(token.strip()):
            return self._viewer(token.strip(), token.strip())
        return self.of_session(request.cookies.get(self.cookie, ""))

    def of_session(self, session: str) -> Viewer | None:
        token, until = self._sessions.get(_hashed(session), ("", 0.0))
        if not token or self.clock() > until:
            self.leave(session)
            return None
        return self._viewer(token, session)

    def candidate(self, given: str) -> Viewer | None:
        token = given.strip()
        return self._viewer(token, token) if _usable(token) else None

    def enter(self, given: str) -> str | None:
        token = given.strip()
        if not _usable(token):
            return None
        while len(self._sessions) >= MOST:
            self._sessions.pop(next(iter(self._sessions)))
        session = secrets.token_urlsafe(32)
        self._sessions[_hashed(session)] = token, self.clock() + LIFETIME
        return session

    def leave(self, session: str) -> None:
        self._sessions.pop(_hashed(session), None)

    def _viewer(self, token: str, mark: str) -> Viewer:
        csrf = hmac.new(self._secret, mark.encode(), hashlib.sha256).hexdigest()
        return Viewer(replace(self.credentials, token=lambda: token), namespace_of(token), csrf)


def _hashed(session: str) -> str:
    """What is looked up, so that no comparison of secrets takes longer the more of them is right."""
    return hashlib.sha256(session.encode(errors="replace")).hexdigest()


def _usable(token: str) -> bool:
    """Whether it can be sent as a header at all."""
    return 0 < len(token) <= LONGEST and token.isascii() and token.isprintable() and " " not in token


def namespace_of(token: str) -> str:
    """The namespace of a ServiceAccount's token, `default` for any other. Only a hint: the API server judges."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        parts = str(claims.get("sub", "")).split(":")
    except (IndexError, ValueError, binascii.Error, AttributeError, RecursionError):
        return "default"
    return (
        parts[2] if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"] and parts[2] else "default"
    )
