"""Read manifests that are not packaged: of a foreign provider, by file or https URL, and of a release."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import string
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean, say

if TYPE_CHECKING:
    import aiohttp

MOST: Final = 4 * 2**20
"""Maximum size of a manifest, in bytes."""

SECONDS: Final = 60.0
"""Seconds for a manifest from a URL, with all redirects: a server may send a byte now and then."""

REDIRECTS: Final = 10
"""Redirects that are followed, as in urllib."""


async def read(named: str, sha256: str | None) -> str:
    """Return the text of a file or an https URL, which needs `sha256`. Raises Failure, also for another hash."""
    if "://" in named:
        if not named.startswith("https://"):
            raise Failure(f"{named}: only https URLs are read", Exit.USAGE)
        if not sha256:
            raise Failure(
                f"{named}: add --sha256 with the hash of the manifest that you have looked at", Exit.USAGE
            )
        content = await _fetched(named)
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
        with file.open("rb") as opened:
            content = opened.read(MOST + 1)
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", Exit.USAGE) from error
    if len(content) > MOST:
        raise _too_long(str(file))
    return content


def _too_long(name: str) -> Failure:
    return Failure(f"{name} has more than {MOST // 2**20} MiB: that is no manifest", Exit.USAGE)


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text", Exit.USAGE) from error


async def _fetched(url: str) -> bytes:
    """Return the content of an https URL. Raises Failure."""
    # 0.2 s of imports that a file does not need
    import aiohttp

    seen = [url]
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(
                # aiohttp's own context is from the time of its import
                connector=aiohttp.TCPConnector(ssl=ssl.create_default_context()),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(total=None),
            ) as session,
        ):
            content = await _followed(session, seen)
    except TimeoutError as error:
        raise Failure(f"cannot read {_shown(url)}: it did not arrive within {SECONDS:.0f} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        at = f"it is redirected to {_shown(seen[-1])}: " if len(seen) > 1 else ""
        raise Failure(f"cannot read {_shown(url)}: {at}{_reason(error)}") from error
    if len(seen) > 1:
        say(f"note: {_shown(url)} was redirected to {_shown(seen[-1])}")
    return content


def _reason(error: Exception) -> str:
    """Return the text of an error on one line, without the URL of the request, which may hold a signature."""
    import aiohttp

    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientResponseError):
        text = f"{error.status} {error.message}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"the proxy does not connect to it: {text}"
    return " ".join(text.split())


async def _followed(session: aiohttp.ClientSession, seen: list[str]) -> bytes:
    """Return the content of the URL in `seen`, and append each https URL to which it is redirected.

    Other hosts are asked, too, because releases are often stored on one. Raises Failure for any other redirect.
    """
    from yarl import URL

    while True:
        url = URL(quote(seen[-1], safe=string.punctuation), encoded=True)
        async with session.get(url, allow_redirects=False, proxy=_proxy(url.host or "")) as answer:
            place = answer.headers.get("Location")
            if not 300 <= answer.status < 400 or not place:
                return await _body(answer, seen[0])
            place = urljoin(seen[-1], place)
        if urlsplit(place).scheme != "https":
            raise ValueError(f"it is redirected to {_shown(place)}, which is no https URL")
        if len(seen) > REDIRECTS:
            raise ValueError(f"more than {REDIRECTS} redirects are not followed")
        seen.append(place)


async def _body(answer: aiohttp.ClientResponse, name: str) -> bytes:
    """Return the content of an answer. Raises ValueError for a refusal, Failure for more than MOST bytes."""
    if not 200 <= answer.status < 300:
        raise ValueError(f"the answer is {answer.status} {clean(answer.reason or '')}".rstrip())
    content = bytearray()
    async for piece in answer.content.iter_any():
        content += piece
        if len(content) > MOST:
            raise _too_long(_shown(name))
    return bytes(content)


def _proxy(host: str) -> str | None:
    """Return the proxy of HTTPS_PROXY for the host, None if NO_PROXY names the host."""
    return None if proxy_bypass(host) else getproxies().get("https")


def _shown(url: str) -> str:
    """Return a URL without its user and password, and without its query, which may hold a signature."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    address, mark, _ = f"{host.rpartition('@')[2]}{slash}{path}".partition("?")
    return clean(f"{scheme}{separator}{address}{f'{mark}…' if mark else ''}")
