"""The TLS server of the webhooks.

Each certificate has an SSLContext of its own, because a context keeps a leaf for each kind of key, and would still
present an EC leaf after an RSA leaf. New handshakes get the new context, and no connection is dropped.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from kubefoundry_core.certificates import Material, Unusable

GRACE: Final = 2.0
"""Seconds to finish reviews in flight at shutdown. The whole process has 5 (contract §6)."""


def server_context(client_authority: str = "") -> ssl.SSLContext:
    """Return the TLS settings of connections.

    Args:
        client_authority: PEM file of the authority that must have signed a client's certificate; empty admits
            everybody.

    Raises:
        OSError: The file cannot be read, or is not PEM (ssl.SSLError).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_authority:
        context.load_verify_locations(client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Listener:
    """Listens on a bound socket once there is a certificate to present.

    Args:
        application: Answers the requests.
        bound: The socket.
        new_context: Makes the TLS settings.
        delay: Seconds to go on listening at the end: nodes send reviews here until they have read that the pod ends.
    """

    def __init__(
        self,
        application: web.Application,
        bound: socket.socket,
        new_context: Callable[[], ssl.SSLContext] = server_context,
        delay: float = 0.0,
    ) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=GRACE,
            # A compressed body could exceed its limit once inflated; no API server sends one.
            auto_decompress=False,
        )
        self._socket = bound
        self._new_context = new_context
        self._delay = delay
        self._is_ending = False
        application.on_response_prepare.append(self._close_at_end)
        self._context = new_context()
        self.presented: Material | None = None

    async def present(self, material: Material) -> None:
        """Present this leaf from now on. The first call starts to listen."""
        if material == self.presented:
            return
        context = self._new_context()
        _load(context, material)
        self._context = context
        if self.presented is None:
            await self._runner.setup()
            listening = self._new_context()
            listening.sni_callback = self._choose
            await web.SockSite(self._runner, self._socket, ssl_context=listening).start()
        self.presented = material

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        """Continue a handshake with the newest context. OpenSSL calls this with or without a server name."""
        connection.context = self._context

    async def closed_at_end(self) -> None:
        """Wait to be cancelled, listen for `delay` seconds more, then finish the reviews in flight."""
        try:
            await asyncio.Event().wait()
        finally:
            self._is_ending = True
            if self.presented is not None:
                await asyncio.sleep(self._delay)
            await self._runner.cleanup()
            self._socket.close()

    async def _close_at_end(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let the API server send its next review to another pod. It does not repeat a review that is cut off."""
        if self._is_ending:
            response.force_close()
            # aiohttp has made the headers by now. Without this one, the API server would send its next review on a
            # connection that closes at that moment.
            response.headers["Connection"] = "close"


def check_loads(material: Material) -> None:
    """Load the leaf and its key into a new context, so that a refusal is known before clients trust the leaf.

    Raises:
        Unusable: OpenSSL refuses the leaf, or an authority after it.
    """
    try:
        _load(server_context(), material)
    except ssl.SSLError as error:
        raise Unusable(
            f"OpenSSL refuses tls.crt ({error.reason or error}); issue it, and the authorities in it, with SHA-256 "
            "and RSA keys of at least 2048 bits or P-256 keys"
        ) from error


def _load(context: ssl.SSLContext, material: Material) -> None:
    # The ssl module reads certificates only from files.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(material.leaf)
        key.write_bytes(material.leaf_key)
        context.load_cert_chain(certificate, key)
