"""Runs a sequence on both servers, and returns the first difference."""

from __future__ import annotations

import copy
import difflib
import json
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._cluster.requests import path
from support.differential.requests import Sequence, Step, Subject
from support.differential.servers import Answering, Reply

NAMESPACE: Final = "differential"
_TIMES: Final = ("creationTimestamp", "deletionTimestamp")


class Difference(NamedTuple):
    """A request that the servers answer differently, as `diff`-like lines."""

    seed: int
    request: str
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}: {self.request}", *self.lines])


@dataclass(slots=True)
class _Side:
    """A server, and what it answered about the object so far."""

    server: Answering
    sequence: Sequence
    live: dict[str, Any] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    uids: list[str] = field(default_factory=list)

    def send(self, step: Step) -> Reply:
        kind = self.sequence.subject.kind
        namespace = NAMESPACE if kind.namespaced else None
        if step.edit or "current" in (step.version, step.uid):
            self._read()
        url = path(kind, namespace, None if step.collection else self.sequence.name) + step.subresource
        reply = self.server.send(step.method, url, step.query, self._body(step), step.content_type)
        self._note(reply.body)
        return reply

    def _read(self) -> None:
        kind = self.sequence.subject.kind
        url = path(kind, NAMESPACE if kind.namespaced else None, self.sequence.name)
        reply = self.server.send("GET", url, {}, None, "")
        self.live = reply.body if reply.code == 200 else {}
        self._note(reply.body)

    def _note(self, body: dict[str, Any]) -> None:
        meta = body.get("metadata") or {}
        if (version := meta.get("resourceVersion")) and "items" not in body and version not in self.versions:
            self.versions.append(version)
        if (uid := meta.get("uid")) and uid not in self.uids:
            self.uids.append(uid)

    def _body(self, step: Step) -> Any:
        body = copy.deepcopy(step.body)
        if not isinstance(body, dict):
            return body
        meta = self.live.get("metadata") or {}
        if step.edit and self.live:
            body = {**copy.deepcopy(self.live), **body, "metadata": {**meta, **body["metadata"]}}
        place = body.get("preconditions") if step.method == "DELETE" else body.get("metadata")
        if place is None:
            return body
        place.pop("resourceVersion", None)
        if step.version != "none":
            place["resourceVersion"] = meta.get("resourceVersion", "1") if step.version == "current" else "1"
        if step.method == "DELETE" and step.uid != "none":
            place["uid"] = meta.get("uid", "none") if step.uid == "current" else "none"
        return body

    def shown(self, body: Any) -> Any:
        """Return a body without the values in which two servers may differ."""
        if body.get("kind") == "Status":
            return _shown_status(body)
        if "items" in body:
            return {
                **body,
                "metadata": {},
                "items": [self.shown({**item, "kind": "", "apiVersion": ""}) for item in body["items"]],
            }
        meta = dict(body.get("metadata") or {})
        for name in _TIMES:
            if name in meta:
                meta[name] = "set"
        if "uid" in meta:
            meta["uid"] = self.uids.index(meta["uid"]) if meta["uid"] in self.uids else "new"
        if version := meta.get("resourceVersion"):
            meta["resourceVersion"] = self.versions.index(version)
        entries = [
            {key: value for key, value in entry.items() if key != "time"}
            for entry in meta.get("managedFields") or ()
        ]
        meta["managedFields"] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
        return {**body, "metadata": meta}


def _shown_status(body: dict[str, Any]) -> Any:
    details = {**(body.get("details") or {})}
    details.pop("uid", None)
    details.pop("retryAfterSeconds", None)
    causes = {(cause.get("reason"), cause.get("field")) for cause in details.pop("causes", None) or ()}
    return {
        "code": body.get("code"),
        "status": body.get("status"),
        "reason": body.get("reason"),
        "details": details,
        "causes": sorted(map(str, causes)),
    }


def first_difference(
    seed: int, real: Answering, memory: Answering, subjects: tuple[Subject, ...] | None = None
) -> tuple[int, Difference | None]:
    """Run the sequence of a seed on both servers. Return the number of requests, and the first difference."""
    sequences = [Sequence(seed, subjects) if subjects else Sequence(seed) for _ in range(2)]
    left, right = _Side(real, sequences[0]), _Side(memory, sequences[1])
    sent = 0
    try:
        for step in [*Sequence(seed, *([subjects] if subjects else [])).steps(), Step("GET")]:
            sent += 1
            answers = [side.send(step) for side in (left, right)]
            if answers[1].code == 501:
                return sent, Difference(seed, _request(step), [str(answers[1].body.get("message"))])
            seen = [
                json.dumps({"code": reply.code, "body": side.shown(reply.body)}, sort_keys=True, indent=1)
                for side, reply in zip((left, right), answers, strict=True)
            ]
            if seen[0] != seen[1]:
                texts = [reply.body.get("message") for reply in answers]
                return sent, Difference(
                    seed,
                    _request(step),
                    [*(f"  {str(text)[:300]}" for text in texts if text), *_lines(*seen)],
                )
        return sent, None
    finally:
        for side in (left, right):
            side.send(Step("PATCH", {"metadata": {"finalizers": None}}, {}, "application/merge-patch+json"))
            side.send(Step("DELETE", {"apiVersion": "v1", "kind": "DeleteOptions"}))


def _request(step: Step) -> str:
    return f"{step.method} {step.subresource} {step.query} {step.content_type} {step.version} {json.dumps(step.body)}"


def _lines(real: str, memory: str) -> list[str]:
    lines = difflib.unified_diff(real.splitlines(), memory.splitlines(), "real", "memory", n=4, lineterm="")
    return list(lines)
