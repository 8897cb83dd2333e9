"""The upstream kind in this cluster: watches and probes its CRD, and watches its objects."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_fields import declared, version_schema
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk._provider.watch.operator_settings import OperatorSettings
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime.crd_watch import CrdWatch
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Store

log = logging.getLogger(__name__)

UNLISTED: Final = 5.0
"""Seconds for which the list of objects has to fail before the failure is reported."""

TAKEN_UP: Final = 10.0
AGAIN: Final = 3.0
"""A refusal in the first TAKEN_UP seconds after a change of the CRD is retried after AGAIN seconds: we may have seen
the change before the API server, or the replica that answered, used the new schema."""


class Upstream(CrdWatch):
    """The upstream kind as it is installed: its CRD, its version, and its objects.

    `changed` is called when the fields or the version that the provider can write change.
    """

    def __init__(
        self,
        process: Process,
        provider: Provider,
        manager: str,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        objects = Store(managers=frozenset({manager}), content_owners=True)
        super().__init__(process, provider.upstream.crd, objects, changed)
        self._provider = provider
        self._probed: Schema | UnsupportedSchema | None = None
        self._clock = clock
        self._changed_at = clock()
        readable = provider.operator if provider.operator and provider.operator.read else None
        self.settings = OperatorSettings(readable, self._settings_changed) if readable else None
        self.version: str | None = None
        """The version through which objects are addressed; None while no version is served."""
        self.digest: str | None = None
        """The digest of that version's schema. It is reported, and a change of it causes retries; it never decides
        how objects are written (contract §4.10)."""
        self.names_generation = False
        """Whether a status has to name its generation, because that version declares `status.observedGeneration` and
        the operator then always writes it."""
        self.unlisted: str | None = None
        """Why the objects cannot be listed or watched, in the server's words; None if they can."""
        self._failing_since: float | None = None
        self.converts = False
        """Whether a webhook converts between the versions. Without a webhook, they differ only in their
        names."""

    @property
    def schema(self) -> Schema | UnsupportedSchema | None:
        """The result of `probe`; None while the CRD is not installed."""
        if isinstance(self._probed, Schema) and self.settings:
            return replace(self._probed, discovered=self.settings.values)
        return self._probed

    @property
    def kind(self) -> Kind | None:
        """The kind, in the version through which objects are addressed; None while no object can exist.

        It is set even if the provider can only read and delete the objects.
        """
        return None if self.version is None else self._provider.upstream.served(self.version)

    @property
    def is_synced(self) -> bool:
        """Whether all objects of the kind are listed, or it is certain that there are none."""
        discovered = self.settings is None or self.settings.is_known
        return discovered and self.listed and (self.kind is None or self.objects.synced.is_set())

    def listing(self, error: Exception | None) -> None:
        """Record that the watch of the objects failed, or works (None).

        A failure is reported after UNLISTED seconds. This clock stops while every watch fails, because then the API
        server is unreachable.
        """
        now = self._process.outage_clock.now()
        if error is None:
            self._failing_since = None
            self._report_unlisted(None)
        elif isinstance(error, ApiError):
            self._failing_since = now if self._failing_since is None else self._failing_since
            if now - self._failing_since >= UNLISTED and self.unlisted is None:
                upstream = self._provider.upstream
                what_to_do = (
                    "grant the provider that permission: apply its manifest again"
                    if error.code == 403
                    else f"check the {self._provider.title} operator and its webhooks"
                )
                self._report_unlisted(
                    f"{upstream.kind} objects cannot be listed: {error.code} {error.reason}: {error.message}; "
                    f"{what_to_do}"
                )

    def _report_unlisted(self, message: str | None) -> None:
        if self.unlisted != message:
            self.unlisted = message
            self._changed()

    def worth_another_try(self, otherwise: float) -> float:
        """Return `otherwise`, or at most AGAIN if the CRD changed less than TAKEN_UP seconds ago."""
        return min(otherwise, AGAIN) if self._clock() - self._changed_at < TAKEN_UP else otherwise

    async def run(self) -> None:
        """Watch the CRD until cancelled. A kind that is part of Kubernetes has no CRD and always exists."""
        upstream = self._provider.upstream
        if upstream.schema is not None:
            self.listed = True
            self._take(upstream.schema, upstream.version, None)
            return
        await super().run()

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take the CRD, or its absence. The first call reports a change even if there is no CRD."""
        first = not self.listed
        super().replace(objects, resource_version, rewound=rewound)
        if first and self._probed is None:
            self._changed()

    def defined(self, crd: Object | None) -> None:
        """Probe the CRD, and report a change of the result, the version or its schema; None if the CRD is gone."""
        if crd is None:
            if self._probed is not None:
                self._take(None, None, None)
            return
        probed = self._probe(crd)
        version = addressed(crd, probed, self.version)
        digest = schema_digest(crd, version)
        self.names_generation = self._provider.names_generation and declares_generation(crd, version)
        self.converts = (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook"
        if (probed, version, digest) != (self._probed, self.version, self.digest):
            self._take(probed, version, digest)

    def _probe(self, crd: Object) -> Schema | UnsupportedSchema:
        if missing := _missing(crd, self._provider.upstream.kind):
            return UnsupportedSchema(missing)
        try:
            return self._provider.probe(crd)
        except Exception as error:
            log.exception("the CRD cannot be probed", extra=logs.values(crd=self._provider.upstream.crd))
            return UnsupportedSchema((f"a schema that can be read ({described(error)})",))

    def _take(
        self, probed: Schema | UnsupportedSchema | None, version: str | None, digest: str | None
    ) -> None:
        is_moved = version != self.version
        self._probed, self.version, self.digest = probed, version, digest
        self._changed_at = self._clock()
        if is_moved:
            self._follow()
        self._changed()

    def _settings_changed(self) -> None:
        if self.listed:
            self._changed()

    def _follow(self) -> None:
        """Start or stop the watch of the objects, or move it to the version that is used now."""
        kind = self.kind
        selector = manifest.selector(self._provider.name) if kind and kind.built_in else None
        self._failing_since = self.unlisted = None
        self.follow_objects(kind, selector=selector, failing=self.listing)


def _missing(crd: Object, kind: str) -> tuple[str, ...]:
    """Return the kind and the scope that the CRD lacks. Without them, our objects cannot be written."""
    spec = mapping(crd.get("spec"))
    defined = {
        f"kind {kind}": mapping(spec.get("names")).get("kind", kind) == kind,
        "scope Namespaced": spec.get("scope", "Namespaced") == "Namespaced",
    }
    return tuple(name for name, is_defined in defined.items() if not is_defined)


def addressed(crd: Object, probed: Schema | UnsupportedSchema | None, before: str | None) -> str | None:
    """Return the version to write. If none can be written, return a served version to read and delete objects.

    `probed` is None to read objects only. If no version can be written, `before`, the version used until now, is kept
    while it is served. Otherwise the stored version is used if it is served, else any served version.
    """
    if isinstance(probed, Schema):
        return probed.api_version.rpartition("/")[2]
    served = [str(item["name"]) for item in crd["spec"]["versions"] if item.get("served")]
    stored = [str(item["name"]) for item in crd["spec"]["versions"] if item.get("storage")]
    return next((name for name in (before, *stored, *served) if name in served), None)


def declares_generation(crd: Object, version: str | None) -> bool:
    """Check whether that version declares `status.observedGeneration`."""
    return any(
        declared(version_schema(item), "status.observedGeneration") is not None
        for item in mappings(mapping(crd.get("spec")).get("versions"))
        if item.get("name") == version
    )


def schema_digest(crd: Object, version: str | None) -> str | None:
    """Return the first 12 hex digits of the SHA-256 of that version's schema without its descriptions."""
    candidate: Mapping[str, Any]
    for candidate in crd["spec"]["versions"]:
        if candidate["name"] == version:
            text = json.dumps(
                _undescribed((candidate.get("schema") or {}).get("openAPIV3Schema") or {}),
                sort_keys=True,
                separators=(",", ":"),
            )
            return hashlib.sha256(text.encode()).hexdigest()[:12]
    return None


def _undescribed(schema: Any) -> Any:
    """Return the schema without descriptions, which change between releases without changing the meaning.

    A property named description stays. An empty `required` is removed, too, because the API server drops it: so a
    published CRD has the same digest as the installed one.
    """
    if isinstance(schema, dict):
        return {
            key: _undescribed(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
            and not (key == "required" and value == [])
        }
    if isinstance(schema, list):
        return [_undescribed(item) for item in schema]
    return schema
