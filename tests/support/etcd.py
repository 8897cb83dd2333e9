"""What a control plane of ours keeps in etcd, read and put back through etcd's JSON gateway."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

OBJECTS: Final = b"/registry/"
EVERY: Final = b"/registry0"
"""The first key behind all that begin with OBJECTS."""

SECONDS: Final = 30.0


class Etcd:
    """folder: the control plane's. Calls raise OSError or http.client.HTTPException."""

    def __init__(self, folder: Path) -> None:
        pki = folder / "pki"
        self._context = ssl.create_default_context(cafile=pki / "etcd-ca.crt")
        self._context.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
        self._port = int(json.loads((folder / "state.json").read_text())["etcdPort"])

    def values(self) -> dict[bytes, tuple[int, bytes]]:
        """Revision and value of each key."""
        return {key: (revision, value) for key, revision, value in self._range(OBJECTS, EVERY)}

    def revisions(self) -> dict[bytes, int]:
        """The revision at which each key was written last."""
        return {key: revision for key, revision, _ in self._range(OBJECTS, EVERY, keys_only=True)}

    def value(self, key: bytes) -> bytes | None:
        return next((value for _, _, value in self._range(key)), None)

    def write(self, values: Mapping[bytes, bytes], removed: Iterable[bytes]) -> None:
        """Put these values, and remove these keys.

        A transaction has one revision, and Kubernetes expects one change of a resource at a revision: a watch that
        the API server ends in between, because it is slow, goes on behind that revision and never sees the rest. The
        API server's own watch of IPAddresses then deletes missing objects without an end.
        """
        puts = {
            key: {"requestPut": {"key": _text(key), "value": _text(value)}} for key, value in values.items()
        }
        removals = {key: {"requestDeleteRange": {"key": _text(key)}} for key in removed}
        rest: dict[bytes, list[dict[str, Any]]] = {}
        for key, operation in (puts | removals).items():
            rest.setdefault(_resource(key), []).append(operation)
        for operations in itertools.zip_longest(*rest.values()):
            self._ask("/v3/kv/txn", {"success": [operation for operation in operations if operation]})

    def _range(
        self, key: bytes, end: bytes = b"", *, keys_only: bool = False
    ) -> Sequence[tuple[bytes, int, bytes]]:
        asked = {"key": _text(key), "range_end": _text(end), "keys_only": keys_only}
        return [
            (
                base64.b64decode(found["key"]),
                int(found["mod_revision"]),
                base64.b64decode(found.get("value", "")),
            )
            for found in self._ask("/v3/kv/range", asked).get("kvs", ())
        ]

    def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._context, timeout=SECONDS
        )
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise OSError(f"etcd's {path}: {answer.status} {content[:500]!r}")
            return dict(json.loads(content))
        finally:
            connection.close()


def _resource(key: bytes) -> bytes:
    """Return the part of the key that the objects of a resource share: a group has a dot."""
    parts = key.removeprefix(OBJECTS).split(b"/")
    return b"/".join(parts[: 2 if b"." in parts[0] else 1])


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
