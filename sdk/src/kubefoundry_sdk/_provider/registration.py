"""The provider's InferenceProviderConfig: registered at start, then kept alive by a heartbeat (contract §5)."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import Condition, rfc3339
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.reasons import REGISTRATION_APPLIED, UPSTREAM_OPERATOR_UP, UPSTREAM_READY
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.retry import wait
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._provider.watch.upstream_operator import OperatorWatch
from kubefoundry_sdk._runtime import admitted, problem_events, wall_clock
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.recorder import Recorder

log = logging.getLogger(__name__)

RULES_APPLIED: Final = "RulesApplied"

RULES: Final = ".spec.selectionRules"
"""The path of the field that an administrator may own, in full or in part."""

DELAYS: Final = Backoff(0.2, 30.0)
"""Delays between two attempts to register or to report."""


class Registration:
    """Registers the provider, and reports every `interval` seconds until cancelled. `poke` requests a report now."""

    def __init__(
        self,
        client: Client,
        provider: Provider,
        upstream: Upstream,
        operator: OperatorWatch | None,
        recorder: Recorder,
        *,
        interval: float,
    ) -> None:
        self._client = client
        self._provider = provider
        self._upstream = upstream
        self._operator = operator
        self._recorder = recorder
        # Reported times have whole seconds.
        self._interval = max(1.0, interval)
        self._manager = names.provider_manager(provider.name)
        self._poked = asyncio.Event()
        self._rules_are_ours = True
        self._conditions: dict[str, Condition] = {}
        self._changed = {"": "", "status": ""}
        """What admission changed in the last write, by subresource; empty if it was stored as sent."""

    def poke(self) -> None:
        """Write the registration again soon."""
        self._poked.set()

    async def run(self) -> None:
        """Register the provider, and keep its status current until cancelled."""
        registered = False
        failures = 0
        while True:
            self._poked.clear()
            try:
                if not registered:
                    await self._register()
                    # Apply a registration that admission changed again with each heartbeat.
                    registered = not self._changed[""]
                if self._upstream.listed:
                    await self._report()
                pause, failures = self._interval, 0
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.not_found:
                    # An administrator deleted the registration. Register again, because the provider is running.
                    registered = False
                failures += 1
                pause = wait(DELAYS.after(failures), error)
                log.warning("registration failed, retrying", extra=logs.values(error=str(error)))
            try:
                async with asyncio.timeout(pause):
                    await self._poked.wait()
            except TimeoutError:
                pass

    async def _register(self) -> None:
        """Apply the registration without force first, so that an administrator's selection rules stay."""
        body = registration(self._provider)
        try:
            live = await self._client.apply(PROVIDER_CONFIGS, body, manager=self._manager, force=False)
            self._rules_are_ours = True
        except ApiError as error:
            if not error.conflict:
                raise
            self._rules_are_ours = not any(field.startswith(RULES) for field in error.conflicting_fields)
            if not self._rules_are_ours:
                del body["spec"]["selectionRules"]
                log.info("selection rules are managed by someone else and are not overwritten")
            live = await self._client.apply(PROVIDER_CONFIGS, body, manager=self._manager, force=True)
        self._compare(live, body)
        # A restart is not a transition, so keep the transition times in the live status.
        for item in (live.get("status") or {}).get("conditions") or ():
            self._conditions.setdefault(item["type"], item)

    async def _report(self) -> None:
        now = wall_clock.now()
        kind = self._upstream.kind
        status: dict[str, Any] = {
            "ready": isinstance(self._upstream.schema, Schema) and not self._upstream.unlisted,
            "version": f"{names.provider_manager(self._provider.name)}:v{self._provider.version}",
            "lastHeartbeat": rfc3339(now),
            "conditions": [self._stamped(item, now) for item in self._current_conditions()],
        }
        # Leave out empty values, because the API server would turn an applied empty map into null and refuse it.
        if self._provider.flags:
            status["flags"] = dict(self._provider.flags)
        if isinstance(self._upstream.schema, Schema) and self._upstream.schema.discovered:
            status["settings"] = dict(self._upstream.schema.discovered)
        if kind:
            # Report the version even if the provider cannot write it, because it shows the installed upstream.
            status["upstreamCRDVersion"] = kind.api_version
            status["upstreamSchemaHash"] = self._upstream.digest or ""
        body = {**_head(self._provider), "status": status}
        stored = await self._client.apply_status(PROVIDER_CONFIGS, body, manager=self._manager)
        was_changed = self._changed["status"]
        self._compare(stored, body, "status")
        if was_changed and not self._changed["status"]:
            # Withdraw the condition at once. Report it later, because a webhook may change every other write.
            self.poke()

    def _compare(self, stored: Object, body: Object, subresource: str = "") -> None:
        """Compare the answer to a write with its body. The next heartbeat sends it again."""
        text = ""
        if lost := admitted.changed(stored, body, self._manager, subresource=subresource):
            text = admitted.describe(PROVIDER_CONFIGS, self._provider.name, lost, subresource=subresource)
            component = f"kubefoundry-provider-{self._provider.name}"
            problem_events.altered(self._recorder, component, stored, text)
        self._changed[subresource] = text

    def _current_conditions(self) -> list[Condition]:
        conditions = [upstream_condition(self._provider, self._upstream.schema, self._upstream.unlisted)]
        if self._upstream.settings:
            conditions.append(self._upstream.settings.condition())
        if self._operator is not None and self._operator.seen:
            conditions.append(operator_condition(self._provider, self._operator.down))
        if not self._rules_are_ours:
            conditions.append(
                {
                    "type": RULES_APPLIED,
                    "status": "False",
                    "reason": "ManagedByOthers",
                    "message": "spec.selectionRules is managed by someone else: the provider's are not applied",
                }
            )
        if changed := "; ".join(filter(None, self._changed.values())):
            conditions.append(_condition(REGISTRATION_APPLIED, "False", "ChangedByAdmission", changed))
        return conditions

    def _stamped(self, item: Condition, now: datetime) -> Condition:
        before = self._conditions.get(item["type"], {})
        if before.get("message") != item["message"]:
            log.info(
                "registration condition changed",
                extra=logs.values(type=item["type"], status=item["status"], text=item["message"]),
            )
        kept = before.get("lastTransitionTime") if before.get("status") == item["status"] else None
        self._conditions[item["type"]] = {**item, "lastTransitionTime": kept or rfc3339(now)}
        return self._conditions[item["type"]]


def registration(provider: Provider) -> Object:
    """Return the InferenceProviderConfig that the provider applies."""
    head = _head(provider)
    annotations = {names.CONTRACT_ANNOTATION: provider.contract}
    if provider.edits_recreate:
        annotations[names.EDITS_RECREATE_ANNOTATION] = "true"
    head["metadata"]["annotations"] = annotations
    return {
        **head,
        "spec": {
            "capabilities": {
                "engines": list(provider.capabilities.engines),
                "servingModes": list(provider.capabilities.serving_modes),
                "cpuSupport": provider.capabilities.cpu_support,
                "gpuSupport": provider.capabilities.gpu_support,
            },
            "selectionRules": [
                {
                    "condition": rule.condition,
                    "priority": rule.priority,
                    **({"reason": rule.reason} if rule.reason else {}),
                }
                for rule in provider.selection_rules
            ],
            "documentation": provider.documentation,
        },
    }


def upstream_condition(provider: Provider, schema: Any, unlisted: str | None = None) -> Condition:
    """Return `UpstreamReady`: whether the upstream CRD is installed in a form that the provider can write.

    `schema` is None if the CRD is not installed. `unlisted` says why the upstream objects cannot be listed.
    """
    if unlisted:
        return _upstream("False", "ListFailed", unlisted)
    crd = provider.upstream.crd
    if provider.upstream.version is not None and isinstance(schema, Schema):
        message = f"Kind {provider.upstream.kind} of {schema.api_version} is part of Kubernetes"
        return _upstream("True", "SchemaSupported", message)
    if isinstance(schema, Schema):
        used = f"CRD {crd} is installed, using {schema.api_version}"
        if schema.lost:
            lost = ", ".join(schema.lost)
            upgrade = f"a newer {provider.title} supports them"
            return _upstream("True", "SchemaDegraded", f"{used}; without: {lost}; {upgrade}")
        return _upstream("True", "SchemaSupported", used)
    if schema is None:
        return _upstream(
            "False", "CRDNotInstalled", f"CRD {crd} is not installed; install the {provider.title} operator"
        )
    missing = ", ".join(schema.missing)
    return _upstream(
        "False",
        "UnsupportedSchema",
        f"CRD {crd} lacks {missing}; install a {provider.title} version that this provider supports",
    )


def operator_condition(provider: Provider, down: str | None) -> Condition:
    """Return `UpstreamOperatorUp`. `down` is the evidence that the operator is down."""
    if down:
        return _condition(
            UPSTREAM_OPERATOR_UP, "False", "OperatorDown", f"{down}; check why its pods do not run"
        )
    return _condition(UPSTREAM_OPERATOR_UP, "True", "OperatorUp", f"The {provider.title} operator is up")


def _upstream(status: str, reason: str, message: str) -> Condition:
    return _condition(UPSTREAM_READY, status, reason, message)


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _head(provider: Provider) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.PROVIDER_CONFIG,
        "metadata": {"name": provider.name},
    }
