"""Read manifests that are not packaged: of a foreign provider, by file or https URL, and of a release."""

from __future__ import annotations

import asyncio
import hashlib
import urllib.request
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit
from urllib.request import Request

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean, say

MOST: Final = 4 * 2**20
"""Maximum size of a manifest from a URL, in bytes."""
SECONDS: Final = 30.0


async def read(named: str, sha256: str | None) -> str:
    """Return the text of a file or an https URL, which needs `sha256`. Raises Failure, also for another hash."""
    if "://" in named:
        if not named.startswith("https://"):
            raise Failure(f"{named}: only https URLs are read", Exit.USAGE)
        if not sha256:
            raise Failure(
                f"{named}: add --sha256 with the hash of the manifest that you have looked at", Exit.USAGE
            )
        content = await asyncio.to_thread(_fetched, named)
    else:
        content = await asyncio.to_thread(_content, Path(named))
    digest = hashlib.sha256(content).hexdigest()
    if sha256 and digest != sha256.lower():
        raise Failure(
            f"{named} has the SHA-256 {digest}, not the one of --sha256: it is not what you have looked at"
        )
    return _text(content, named)


def of_release(path: Path) -> tuple[str, str]:
    """Return the name and the text of a release's install.yaml.

    Args:
        path: The folder of the release, whose checksums are compared, or the file alone.

    Raises:
        Failure: The file cannot be read, or its checksum is not in SHA256SUMS.
    """
    if not path.is_dir():
        return str(path), _text(_content(path), str(path))
    file, checksums = path / "install.yaml", path / "SHA256SUMS"
    content = _content(file)
    line = f"{hashlib.sha256(content).hexdigest()}  {file.name}"
    if line not in _text(_content(checksums), str(checksums)).splitlines():
        raise Failure(f"{file} has another checksum than in {checksums.name}; copy the release again")
    return str(file), _text(content, str(file))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", Exit.USAGE) from error


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text", Exit.USAGE) from error


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follow redirects to https URLs, also of other hosts: releases are often stored on one. Refuse any other."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Return the next request. Raise ValueError if its URL is not https."""
        if urlsplit(newurl).scheme != "https":
            raise ValueError(f"it is redirected to {_without_query(newurl)}, which is no https URL")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _without_query(url: str) -> str:
    """Return a URL without its query, which may hold a signature."""
    address, mark, _ = url.partition("?")
    return clean(f"{address}{f'{mark}…' if mark else ''}")


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.build_opener(_HttpsOnly).open(url, timeout=SECONDS) as answer:
            content: bytes = answer.read(MOST + 1)
            if answer.url != url:
                say(f"note: {url} was redirected to {_without_query(answer.url)}")
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {url}: {error}") from error
    if len(content) > MOST:
        raise Failure(f"{url} has more than {MOST // 2**20} MiB: that is no manifest")
    return content
