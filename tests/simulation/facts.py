"""What happened in a history, as the API server and the operators saw it. No component is believed."""

from __future__ import annotations

import logging
from typing import Any, Final

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._cluster.errors import UNPATCHABLE
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.upstream_kind import Schema
from simulation.actions import Actions
from simulation.policies import MODELS, UPSTREAM
from simulation.server import Write
from simulation.world import NAMESPACE, SELECTOR, World, component

RECENT: Final = 12.0
"""Seconds for which a process may not have seen a change, apart from faults."""


class Facts:
    """The edits, acceptances, trials and refusals of a history."""

    def __init__(self, world: World, actions: Actions) -> None:
        self.world = world
        self.actions = actions
        self.specs: dict[str, dict[int, tuple[float, Object]]] = {}
        """Time and spec of each generation of a model, by uid."""
        self.acceptances: list[tuple[float, str, str, int]] = []
        """Time, uid, provider and generation of each acceptance."""
        self.trials: dict[tuple[str, str], float] = {}
        """The last accepted dry run, by component and name of the model."""
        self.refused: dict[tuple[str, str], list[tuple[float, str]]] = {}
        """Time and message of refusals, by component and name of the model."""
        self.removed: dict[str, float] = {}
        """When the finalizers of a model were last removed, by name."""
        self.selected: dict[str, tuple[float, str]] = {}
        """When the selector last chose, and the annotation `reselect` then, by name."""
        self.writes: list[Write] = []
        """The writes of components, without dry runs."""
        self._schemas: dict[str, Any] = {}
        self._expected: dict[tuple[str, str, int], Object | None] = {}

    def note(self, write: Write) -> None:
        """Take a write."""
        name = write.place.key[1]
        is_about_model = write.place.storage in (MODELS, *UPSTREAM)
        if write.code in (400, 403, 422) and is_about_model and UNPATCHABLE not in write.reason:
            self.refused.setdefault((write.by, name), []).append((write.at, write.reason))
        if not write.ok:
            return
        if write.is_dry:
            if write.place.storage in UPSTREAM:
                named = name or str((write.body or {}).get("metadata", {}).get("generateName", "")).rstrip(
                    "-"
                )
                self.trials[write.by, named[:20]] = write.at
            return
        if write.by.startswith("kubefoundry-"):
            self.writes.append(write)
        if write.place.storage == (names.GROUP, names.PROVIDER_CONFIGS) and write.after:
            self._note_registration(write, write.after)
        if write.place.storage == MODELS and write.after:
            self._note_model(write, write.after)

    def _note_registration(self, write: Write, after: Object) -> None:
        if rules := (after.get("spec") or {}).get("selectionRules"):
            self.world.rules[after["metadata"]["name"]] = rules
        if (after.get("status") or {}).get("ready") and write.by.startswith(component("")):
            self.world.healthy[after["metadata"]["name"]] = write.at

    def _note_model(self, write: Write, after: Object) -> None:
        meta = after["metadata"]
        self.specs.setdefault(meta["uid"], {}).setdefault(
            meta["generation"], (write.at, after.get("spec") or {})
        )
        before = ((write.before or {}).get("metadata") or {}).get("finalizers") or []
        if set(before) - set(meta.get("finalizers") or ()) and not write.by.startswith("kubefoundry-"):
            self.removed[meta["name"]] = write.at
        provider = ((after.get("status") or {}).get("provider") or {}).get("name")
        if write.by == SELECTOR and provider:
            before_status = (write.before or {}).get("status") or {}
            if (before_status.get("provider") or {}).get("name") != provider:
                reselect = str((meta.get("annotations") or {}).get(names.RESELECT_ANNOTATION) or "")
                self.selected[meta["name"]] = (write.at, reselect)
        if write.place.subresource and isinstance(write.body, dict):
            self._note_acceptance(write, meta)

    def _note_acceptance(self, write: Write, meta: Object) -> None:
        conditions = {
            item["type"]: item for item in ((write.body.get("status") or {}).get("conditions") or ())
        }
        compatible = conditions.get(reasons.PROVIDER_COMPATIBLE) or {}
        created = conditions.get(reasons.RESOURCE_CREATED) or {}
        generation = compatible.get("observedGeneration")
        is_accepted = (
            compatible.get("status") == "True"
            and created.get("observedGeneration") == generation
            and (created.get("status") == "True" or created.get("reason") == "WaitingForCleanup")
        )
        if is_accepted and write.by.startswith(component("")):
            provider = write.by.removeprefix(component(""))
            self.acceptances.append((write.at, meta["uid"], provider, int(generation or 0)))

    def models(self) -> list[Object]:
        """Return the ModelDeployments."""
        return self.world.server.store.all(MODELS)

    def generation_at(self, uid: str, at: float) -> int:
        """Return the generation of a model at a time."""
        known = [number for number, (since, _) in self.specs.get(uid, {}).items() if since <= at]
        return max(known, default=0)

    def last_edit(self, uid: str) -> float:
        """Return when the spec was last changed."""
        return max((at for at, _ in self.specs.get(uid, {}).values()), default=0.0)

    def expected(self, provider: str, model: Object, generation: int) -> Object | None:
        """Return what the pods of a generation run, None if the provider cannot render it or it never starts."""
        uid = model["metadata"]["uid"]
        key = (provider, uid, generation)
        if key not in self._expected:
            self._expected[key] = self._render(provider, model, generation)
        return self._expected[key]

    def _render(self, provider: str, model: Object, generation: int) -> Object | None:
        if provider not in self.world.built:
            return None
        built, operator = self.world.built[provider], self.world.operators[provider]
        if provider not in self._schemas:
            self._schemas[provider] = built.probe(self.world.crds[provider])
        schema, stored = self._schemas[provider], self.specs.get(model["metadata"]["uid"], {}).get(generation)
        if stored is None or not isinstance(schema, Schema):
            return None
        meta = model["metadata"]
        spec = stored[1]
        try:
            deployment = Deployment(
                meta["name"],
                NAMESPACE,
                meta["uid"],
                generation,
                ModelDeploymentSpec.model_validate(spec),
                {},
                {},
                raw_spec=spec,
            )
            return operator.workload(results.render(built, deployment, schema).main)
        except Exception as error:
            logging.getLogger(__name__).debug("%s cannot render: %s", provider, error)
            return None

    def has_run(self, model: Object, generation: int) -> bool:
        """Check whether pods with the content of a generation have run for a model, and all its roles had one."""
        name = model["metadata"]["name"]
        for provider, operator in self.world.operators.items():
            wanted = self.expected(provider, model, generation)
            if wanted is not None and any(
                run == wanted and serves for owner, run, serves in operator.runs if owner == name
            ):
                return True
        return False

    def serving(self, name: str) -> list[str]:
        """Return the providers whose object of this name serves."""
        return [
            provider
            for provider, operator in self.world.operators.items()
            for obj in operator.objects()
            if obj["metadata"]["name"] == name and operator.serves(obj)
        ]


def is_registration(write: Write) -> bool:
    """Check whether a write is a heartbeat, a Lease or an Event."""
    return write.place.storage[1] in ("leases", "events", names.PROVIDER_CONFIGS)
