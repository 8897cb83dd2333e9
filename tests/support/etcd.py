"""What a control plane of ours keeps in etcd, read and put back through etcd's JSON gateway."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

OBJECTS: Final = b"/registry/"
EVERY: Final = b"/registry0"
"""The first key behind all that begin with OBJECTS."""

OPERATIONS: Final = 100
"""In one transaction; etcd accepts 128."""

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
        """Puts these values, and removes these keys."""
        puts = [{"requestPut": {"key": _text(key), "value": _text(value)}} for key, value in values.items()]
        operations = [*puts, *({"requestDeleteRange": {"key": _text(key)}} for key in removed)]
        for start in range(0, len(operations), OPERATIONS):
            self._ask("/v3/kv/txn", {"success": operations[start : start + OPERATIONS]})

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


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
