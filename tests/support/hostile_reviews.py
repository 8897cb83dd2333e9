"""Hostile input for the webhook's port: requests with a body by kind, and bytes that are no request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_core.admission.application import MAX_BODY, SMALL
from kubefoundry_sdk._api.kinds import Object
from support.deployments import CPU, model_deployment
from support.hostile_json import HOSTILE, places, spoilt

PATHS: Final = ("/validate", "/mutate", "/validate-providerconfig")
STEP: Final = 29
"""Bytes between two positions at which a review is cut off or spoilt."""

REVIEW: Final[Object] = {
    "kind": "AdmissionReview",
    "apiVersion": "admission.k8s.io/v1",
    "request": {
        "uid": "u-1",
        "kind": {"group": "kubefoundry.ai", "version": "v1alpha1", "kind": "ModelDeployment"},
        "name": "m",
        "operation": "UPDATE",
        "object": model_deployment("m", "n", CPU, provider="x"),
        "oldObject": {
            **model_deployment("m", "n", CPU),
            "status": {"conditions": [{"type": "RulesValid", "status": "False", "message": "m"}]},
        },
    },
}
SOUND: Final = json.dumps(REVIEW, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Posted:
    """A request that a client can send. `path` None stands for each of PATHS in turn."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str | None = None


def requests() -> dict[str, list[Posted]]:
    """Return the requests by kind of fault."""
    return {
        "depth": [Posted(body) for body in _deep()],
        "size": [Posted(body) for body in _sizes()],
        "type": [Posted(spoilt(REVIEW, path, text)) for path in places(REVIEW) for text in HOSTILE.values()],
        "encoding": [*_encodings()],
        "cut off": [Posted(SOUND[:length]) for length in range(0, len(SOUND), STEP)],
        "content type": [
            Posted(SOUND, {"Content-Type": content_type})
            for content_type in (
                "",
                "text/html",
                "multipart/form-data; boundary=x",
                "application/x-www-form-urlencoded",
                "a/b; charset=utf-7",
                "x" * 4000,
            )
        ],
        "method and path": [
            Posted(SOUND, {}, method, path)
            for method in ("GET", "PUT", "DELETE", "OPTIONS", "BREW")
            for path in ("/validate", "/", "/validate/../..", "/%00", "/" + "x" * 4000)
        ],
    }


def _deep() -> Iterator[bytes]:
    head = SOUND[: SOUND.index(b'"spec": {') + len(b'"spec": {')] + b'"a": '
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"b":', b"}]")):
        for depth in (1, 60, 63, 64, 65, 199, 200, 201, 960, 5_000, 30_000, 200_000):
            yield head + opening * depth + b"0" + closing * depth + b"}}}}"
            yield opening * depth


def _sizes() -> Iterator[bytes]:
    for length in (0, 1, 2, SMALL - 1, SMALL, SMALL + 1, MAX_BODY - 1, MAX_BODY, MAX_BODY + 1, 8 * 2**20):
        yield b" " * length
        yield b'"' + b"x" * max(length - 2, 0) + b'"'


def _encodings() -> Iterator[Posted]:
    text = SOUND.decode()
    for name in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp037"):
        yield Posted(text.encode(name), {"Content-Type": f"application/json; charset={name}"})
        yield Posted(text.encode(name))
    yield Posted(SOUND, {"Content-Type": "application/json; charset=none-such"})
    for place in range(0, len(SOUND), STEP):
        for wrong in (b"\xff", b"\x00", b"\xed\xa0\xbd", b"\\ud83d"):
            yield Posted(SOUND[:place] + wrong + SOUND[place:])
    bomb = gzip.compress(b" " * 64 * 2**20)
    for coding in ("gzip", "deflate", "br", "x-none"):
        yield Posted(bomb, {"Content-Encoding": coding})
        yield Posted(gzip.compress(SOUND), {"Content-Encoding": coding})


_HEAD: Final = b"POST /validate HTTP/1.1\r\nHost: core\r\n"

RAW: Final = (
    b"\x00" * 100,
    b"\xff" * 20_000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    _HEAD + b"Content-Length: -1\r\n\r\n",
    _HEAD + b"Content-Length: 1e3\r\n\r\n",
    _HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    _HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    _HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
    _HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    _HEAD + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    _HEAD + b"Expect: nothing\r\nContent-Length: 9\r\n\r\n",
    _HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    _HEAD + b"X: " + b"x" * 100_000,
    _HEAD + b"".join(b"X%d: x\r\n" % number for number in range(20_000)),
)
"""Bytes that no HTTP client sends, for connections with and without TLS."""

UNFINISHED: Final = (
    b"",
    _HEAD,
    _HEAD + b"Content-Length: 9\r\n\r\n{",
    _HEAD + b"Content-Length: %d\r\n\r\n{" % MAX_BODY,
)
"""Requests that never end."""
