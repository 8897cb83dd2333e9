"""The selector's controller: watches, decides (`decision`), writes the differences, and reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubefoundry_sdk import Object, cel
from kubefoundry_sdk.selector import (
    MODEL_DEPLOYMENTS,
    PROVIDER_CONFIGS,
    RULES_VALID,
    SELECTIONS,
    SELECTOR_LEASE,
    SELECTOR_MANAGER,
    ApiError,
    Condition,
    Key,
    Kind,
    Process,
    Store,
    condition,
    find,
    keep_status,
    write_status,
)
from kubefoundry_selector.access import REMEMBERED, Access
from kubefoundry_selector.candidate import Provider, SelectionRule
from kubefoundry_selector.decision import announcement, decide, is_choice, is_undecided
from kubefoundry_selector.registry import Registry
from kubefoundry_selector.select import Select, select

UNDECIDED: Final = "unsettled"


class Controller:
    """Reconciles the selector's fields of ModelDeployments and InferenceProviderConfigs."""

    def __init__(self, process: Process, choice: Select = select) -> None:
        self._process = process
        self._choice = choice
        own = frozenset({SELECTOR_MANAGER})
        self._deployments = process.watch(
            MODEL_DEPLOYMENTS,
            managers=own,
            content_only=True,
            index=lambda obj: UNDECIDED if is_undecided(obj) else None,
        )
        self._configs = process.watch(PROVIDER_CONFIGS, managers=own)
        self._registry = Registry(process.outage_clock.now, process.options.heartbeat_timeout)
        self._access = (
            Access(process.client, process.outage_clock.now) if process.options.check_provider_use else None
        )
        self._selections = process.queue("selector", self._select, of=self._deployments)
        self._rules = process.queue("selector-rules", self._check_rules, of=self._configs)
        self._deployments.subscribe(lambda key, obj: self._selections.add(key))
        self._configs.subscribe(self._config_changed)
        # Held without election, too: it shows core that a selector is running (contract §3).
        process.always_hold(SELECTOR_LEASE)

    async def _select(self, key: Key) -> float | None:
        """Decide and write. Return the seconds until the choice may change although no event reports it."""
        live = self._deployments.get(key)
        if live is None:
            return None
        registered = self._registry.providers()
        decided = decide(live, registered, self._choice)
        if self._access and decided and is_choice(live, decided):
            registered = await self._access.checked(live, registered)
            decided = decide(live, registered, self._choice)
        if decided is None:
            await keep_status(
                self._process.client, self._deployments, MODEL_DEPLOYMENTS, live, manager=SELECTOR_MANAGER
            )
            return None
        if await self._write(MODEL_DEPLOYMENTS, self._deployments, live, decided):
            self._announce(live, decided)
        return self._seconds_to_change(registered) if is_undecided(live, decided) else None

    def _seconds_to_change(self, registered: Sequence[Provider]) -> float | None:
        """Return the seconds until an outage becomes long or a permission may have been granted."""
        outage = self._registry.end_of_short_outage()
        if any(provider.denied for provider in registered):
            return REMEMBERED if outage is None else min(outage, REMEMBERED)
        return outage

    def _announce(self, live: Object, decided: Object) -> None:
        event = announcement(live, decided)
        if event is None:
            return
        self._process.recorder.event(live, *event)
        if event[0] == "Normal":
            SELECTIONS.labels(decided["provider"]["name"], "AutoSelected").inc()
        else:
            SELECTIONS.labels("", event[1]).inc()

    async def _check_rules(self, key: Key) -> None:
        live = self._configs.get(key)
        registered = self._registry.get(key[1])
        if live is None or registered is None:
            return
        verdict = rules_valid(registered.rules, generation=live["metadata"]["generation"])
        before = find((live.get("status") or {}).get("conditions"), RULES_VALID) or {}
        written = await self._write(PROVIDER_CONFIGS, self._configs, live, {"conditions": [verdict]})
        if written and verdict["status"] == "False" and verdict["message"] != before.get("message"):
            self._process.recorder.event(live, "Warning", verdict["reason"], verdict["message"])

    async def _write(self, kind: Kind, store: Store, live: Object, fields: Object) -> bool:
        try:
            return await write_status(
                self._process.client, store, kind, live, fields, manager=SELECTOR_MANAGER
            )
        except ApiError as error:
            if not error.not_found:
                raise
            # Deleted meanwhile; its watch event is on the way.
            return False

    def follow(self, store: Store) -> None:
        """Decide undecided deployments again whenever an object of this store changes: a choice depends on it."""
        store.subscribe(lambda key, obj: self._requeue_undecided())

    def _config_changed(self, key: Key, config: Object | None) -> None:
        """Decide undecided deployments again if a value changes that matters to the choice. A heartbeat does not."""
        if self._registry.see(key[1], config):
            self._requeue_undecided()
        self._rules.add(key)

    def _requeue_undecided(self) -> None:
        for waiting in self._deployments.indexed(UNDECIDED, namespace=None):
            meta = waiting["metadata"]
            self._selections.add((meta["namespace"], meta["name"]))


def rules_valid(rules: Sequence[SelectionRule], *, generation: int) -> Condition:
    """Return the condition: False if a rule is skipped. It names each by index and position (contract §5)."""
    broken = [
        f"selectionRules[{rule.index}].condition, {rule.compiled.problem}"
        for rule in rules
        if isinstance(rule.compiled, cel.InvalidRule)
    ]
    if broken:
        message = f"{'; '.join(broken)}. Correct these rules; until then they are skipped"
        return condition(RULES_VALID, False, "InvalidRule", message, generation=generation)
    if not rules:
        message = "No selection rules: the provider is used only if spec.provider.name names it"
    else:
        message = f"Valid selection rules: {len(rules)}"
    return condition(RULES_VALID, True, "RulesValid", message, generation=generation)
