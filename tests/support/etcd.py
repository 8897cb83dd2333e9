"""Read and write the data of a local control plane by etcd's JSON gateway."""

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
"""The first key after all keys that begin with OBJECTS."""

SECONDS: Final = 180.0


class Etcd:
    """The etcd of a control plane, found by its folder. Methods raise OSError or http.client.HTTPException."""

    def __init__(self, folder: Path) -> None:
        pki = folder / "pki"
        self._context = ssl.create_default_context(cafile=pki / "etcd-ca.crt")
        self._context.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
        self._port = int(json.loads((folder / "state.json").read_text())["etcdPort"])

    def values(self) -> dict[bytes, tuple[int, bytes]]:
        """Return revision and value of each key."""
        return {key: (revision, value) for key, revision, value in self._range(OBJECTS, EVERY)}

    def revisions(self) -> dict[bytes, int]:
        """Return the revision of the last write of each key."""
        return {key: revision for key, revision, _ in self._range(OBJECTS, EVERY, keys_only=True)}

    def value(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None if it is missing."""
        return next((value for _, _, value in self._range(key)), None)

    def write(self, values: Mapping[bytes, bytes], removed: Iterable[bytes]) -> None:
        """Put these values, and remove these keys.

        A transaction changes each resource at most once, because Kubernetes expects one change of a resource at a
        revision. A slow watch that the API server ends within a revision resumes after it, and never gets the other
        changes. The API server's own watch of IPAddresses would then delete missing objects forever.
        """
        puts = {
            key: {"requestPut": {"key": _text(key), "value": _text(value)}} for key, value in values.items()
        }
        removals = {key: {"requestDeleteRange": {"key": _text(key)}} for key in removed}
        operations_by_resource: dict[bytes, list[dict[str, Any]]] = {}
        for key, operation in (puts | removals).items():
            operations_by_resource.setdefault(_resource(key), []).append(operation)
        for operations in itertools.zip_longest(*operations_by_resource.values()):
            self._ask("/v3/kv/txn", {"success": [operation for operation in operations if operation]})

    def _range(
        self, key: bytes, end: bytes = b"", *, keys_only: bool = False
    ) -> Sequence[tuple[bytes, int, bytes]]:
        request = {"key": _text(key), "range_end": _text(end), "keys_only": keys_only}
        return [
            (
                base64.b64decode(entry["key"]),
                int(entry["mod_revision"]),
                base64.b64decode(entry.get("value", "")),
            )
            for entry in self._ask("/v3/kv/range", request).get("kvs", ())
        ]

    def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._context, timeout=SECONDS
        )
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                raise OSError(f"etcd's {path}: {response.status} {content[:500]!r}")
            return dict(json.loads(content))
        finally:
            connection.close()


def _resource(key: bytes) -> bytes:
    """Return the part of the key that the objects of a resource share. Only a group has a dot."""
    parts = key.removeprefix(OBJECTS).split(b"/")
    return b"/".join(parts[: 2 if b"." in parts[0] else 1])


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
