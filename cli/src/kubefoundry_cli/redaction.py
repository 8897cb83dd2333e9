"""Redact objects before they leave the cluster: keep structure and state, never a value that may be a secret.

A list names the kept fields: unknown fields keep only their name. Free text (messages, log lines) has no such list;
text that looks like a credential is removed from it.

`llamastack_providers.redaction` is separate: it runs beside a provider and knows the values that it removes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mappings, part

REMOVED: Final = "<removed>"

META: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
)

ANNOTATIONS: Final = (
    names.PAUSED_ANNOTATION,
    names.DRY_RUN_ANNOTATION,
    names.VERIFY_ENDPOINT_ANNOTATION,
    names.APPLIED_GENERATION_ANNOTATION,
)
"""Annotations that keep their values. The record of the applied manifest is not in the list: it has a whole spec."""

TEXTS: Final = frozenset(
    {
        *("type", "status", "reason", "phase", "name", "namespace", "kind", "apiVersion", "mode"),
        *("source", "id", "servedName", "image", "count", "gpu", "memory", "cpu", "replicas"),
        *("huggingFaceToken", "operator", "effect", "key", "plural", "group", "scope", "strategy"),
        *("version", "ready", "lastHeartbeat", "upstreamCRDVersion", "purpose", "claimName"),
        *("size", "storageClassName", "accessMode", "whenDeleted"),
        *("upstreamSchemaHash", "lastTransitionTime", "lastTimestamp", "firstTimestamp", "eventTime"),
        *("uid", "resourceName", "resourceKind", "resourceAPIVersion", "service", "selector"),
        *("selectedReason", "condition", "holderIdentity", "renewTime", "acquireTime"),
        *("serviceAccountName", "startTime", "startedAt", "finishedAt", "engines", "servingModes"),
        *("storedVersions", "finalizers", "imageID", "nodeName", "uri", "gitVersion", "documentation"),
        *("platform", "state", "text", "message", "note", "pod", "since"),
    }
)
"""Fields whose text is kept, except parts that look like a credential. `env[].value` is not in the list."""

ALL_NAMES: Final = frozenset(
    {"args", "env", "annotations", "labels", "nodeSelector", "overrides", "data", "stringData"}
)
"""Maps and lists that users fill: their keys are kept, their values not."""

AMOUNTS: Final = frozenset({"hard", "used", "capacity", "allocatable", "limits", "requests"})
"""Maps of resources to amounts: of quotas, nodes and containers."""

QUANTITY: Final = re.compile(r"\d{1,15}(\.\d{1,9})?([numkKMGTPE]i?)?")
"""An amount of Kubernetes; anything else in such a map may be a secret."""

_SCHEME: Final = r"(?<![a-z0-9+.-])[0-9+.-]*[a-z][a-z0-9+.-]*://"
_KEY: Final = r"(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential|authorization)"
_USER: Final = re.compile(rf"({_SCHEME})[^\s/@]+@", re.I)
_WORD: Final = re.compile(r"[^\s\"']+")
_ADDRESS: Final = re.compile(rf"{_SCHEME}[^?]", re.I)
_CREDENTIALS: Final = (
    # a JSON Web Token
    (re.compile(r"(?<![\w-])(?=[\w-]+\.[\w-])([\w-]*?)\beyJ[\w-]{8,}\.[\w-]+(\.[\w-]*)?"), rf"\1{REMOVED}"),
    (re.compile(r"\b(hf|sk|ghp|gho|ghs|glpat|nvapi|xox[abps])[_-][\w-]{6,}"), REMOVED),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{12,}"), REMOVED),
    (re.compile(r"-----BEGIN [^-]+-----.*?(-----END [^-]+-----|$)", re.S), REMOVED),
    (re.compile(r"\b(bearer|basic)\s+[\w.+/=~-]{6,}", re.I), rf"\1 {REMOVED}"),
    (
        re.compile(
            rf"((?<![\w-])(?=[\w-]*{_KEY})[\w-]+[\"']?\s*(?:[=:]|\s(?=\S*\d))\s*[\"']?)"
            r"(?!<removed>)[^\s\"',;}]+",
            re.I,
        ),
        rf"\1{REMOVED}",
    ),
)
"""The pattern and the replacement of each kind of credential.

No pattern begins with a repetition that can match from every character of a text. The time would grow with the square
of the length, and tenants write these texts.
"""


def scrubbed(text: str) -> str:
    """Remove text that looks like a credential."""
    text = _WORD.sub(_without_query, _USER.sub(r"\1", text))
    for pattern, instead in _CREDENTIALS:
        text = pattern.sub(instead, text)
    return text


def _without_query(word: re.Match[str]) -> str:
    """Return a URL without the part behind its question mark."""
    address = _ADDRESS.search(word[0])
    mark = word[0].find("?", address.end()) if address else -1
    return word[0] if mark < 0 else f"{word[0][: mark + 1]}{REMOVED}"


def redacted(obj: Object) -> Object:
    """Return the object as it may leave the cluster."""
    rest = {key: value for key, value in obj.items() if key != "metadata"}
    return {**_value(rest, ""), "metadata": _metadata(obj.get("metadata") or {})}


def _metadata(meta: Object) -> Object:
    labels, annotations = part(meta, "labels"), part(meta, "annotations")
    return {
        **{key: meta[key] for key in META if key in meta},
        "finalizers": list(meta.get("finalizers") or ()),
        "labels": {key: _kept(value, key.startswith(names.PREFIX)) for key, value in labels.items()},
        "annotations": {
            scrubbed(key): _kept(value, key in ANNOTATIONS) for key, value in annotations.items()
        },
        "ownerReferences": [
            {key: owner.get(key) for key in ("apiVersion", "kind", "name", "uid", "controller")}
            for owner in mappings(meta.get("ownerReferences"))
        ],
        "managers": sorted({_manager(entry) for entry in mappings(meta.get("managedFields"))}),
    }


def _kept(value: Any, is_kept: bool) -> str:
    return scrubbed(str(value)) if is_kept else REMOVED


def _manager(entry: Mapping[str, Any]) -> str:
    name = scrubbed(str(entry.get("manager")))
    return f"{name} {entry.get('operation')} {entry.get('subresource', '')}".strip()


def _value(value: Any, name: str) -> Any:
    if name in ALL_NAMES:
        return _names(value)
    if isinstance(value, Mapping):
        if name in AMOUNTS:
            return {scrubbed(str(key)): _amount(item) for key, item in value.items()}
        return {scrubbed(str(key)): _value(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, name) for item in value]
    if isinstance(value, str):
        return scrubbed(value) if name in TEXTS else REMOVED
    return value


def _amount(value: Any) -> Any:
    return value if QUANTITY.fullmatch(str(value)) else REMOVED


def _names(value: Any) -> Any:
    """Return the keys of a map or the names of a list's items, without values."""
    if isinstance(value, Mapping):
        return {scrubbed(str(key)): _names(item) for key, item in value.items()}
    if isinstance(value, list):
        item_names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
        return [scrubbed(str(name)) if name is not None else REMOVED for name in item_names]
    return REMOVED
