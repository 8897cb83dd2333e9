"""Known defects, each put back as a change of the source: the simulation has to find them again.

`make simulate-known` runs the table. Defects of certificates (T2, T15), of a stopped webhook (T12), of the page and
of the command line are not here: the simulation has no such part.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple


class Change(NamedTuple):
    """Replace a text in the source of a module."""

    module: str
    old: str
    new: str


class Mutation(NamedTuple):
    """A known defect.

    Attributes:
        defect: What was wrong, in one line.
        changes: The changes of the source that bring it back.
        missed: Why the simulation cannot find it; empty if it has to.
    """

    defect: str
    changes: tuple[Change, ...]
    missed: str = ""


def _mutation(defect: str, *changes: Change, missed: str = "") -> Mutation:
    return Mutation(defect, changes, missed)


_RECONCILE: Final = "kubefoundry_sdk._provider.reconcile"
_WRITE: Final = "kubefoundry_sdk._provider.write"

MUTATIONS: Final = {
    "T1": _mutation(
        "a provider takes conditions that others keep for the acceptance of the chosen one",
        Change("kubefoundry_sdk._api.handover", "return owned.keys() >= _STATEMENT", "return True"),
        Change(f"{_RECONCILE}.release", "and not has_our_messages and handover", "and handover"),
        Change(f"{_RECONCILE}.own_status", "    if whole:\n", "    if False:\n"),
    ),
    "T1b": _mutation(
        "any condition counts as an acceptance, whoever wrote it",
        Change("kubefoundry_sdk._api.handover", "return owned.keys() >= _STATEMENT", "return True"),
        Change(
            f"{_RECONCILE}.release",
            "if not ours & managed_fields.HAND_OVER and not has_our_messages and",
            "if",
        ),
    ),
    "T3": _mutation(
        "a finalizer that a webhook strips is written again at each event",
        Change(f"{_RECONCILE}.finalizer", "    if not is_stored:", "    if False:"),
        Change(f"{_RECONCILE}.finalizer", "if digest == memory.held and (wait", "if False and (wait"),
        Change("kubefoundry_sdk._cluster.repetition", "if last.bucket.wait(now):", "if False:"),
    ),
    "T4": _mutation(
        "an object counts as created by a provider only by managedFields",
        Change(f"{_WRITE}.manifest", "if has_finalizer or manager in", "if manager in"),
        Change(
            f"{_WRITE}.manifest",
            'return _labelled(live, provider) and recorded_owner(live).get("uid") == uid',
            "return False",
        ),
        Change(
            f"{_WRITE}.lost_ownership",
            "if manager not in managed_fields.managers(live):\n        return True",
            "if manager not in managed_fields.managers(live):\n        return False",
        ),
    ),
    "T5": _mutation(
        "a refused finalizer ends the reconcile before the observation",
        Change(
            f"{_RECONCILE}.guards",
            "turn.retry_in(await finalizer.restore(context, turn.live))",
            (
                "again = await finalizer.restore(context, turn.live)\n"
                "    if again:\n        return End(again, reports=False)"
            ),
        ),
    ),
    "T6": _mutation(
        "a kind that cannot be listed is reported nowhere",
        Change("kubefoundry_sdk._provider.registration", " and not self._upstream.unlisted,", ","),
    ),
    "T7": _mutation(
        "each 422 counts as a conflict",
        Change(f"{_RECONCILE}.finalizer", "if error.outdated:", "if error.code == 422:"),
        Change("kubefoundry_sdk._runtime.status", "if error.outdated:", "if error.code == 422:"),
    ),
    "T8": _mutation(
        "an answer without our labels is stored, and no watch updates it",
        missed="KubeRay and Dynamo objects are watched without labels; helpers and provider direct are not simulated",
    ),
    "T9": _mutation(
        "only the first owner counts",
        Change(
            f"{_WRITE}.manifest",
            'return any(owner.get("uid") == uid for owner in _owners(live))',
            'return any(owner.get("uid") == uid for owner in _owners(live)[:1])',
        ),
    ),
    "T10": _mutation(
        "a refusal by a quota is tried again after five minutes",
        Change("kubefoundry_sdk._runtime.refusals", "QUOTA: Final = 30.0", "QUOTA: Final = 300.0"),
    ),
    "T11": _mutation(
        "the selector forgets a provider whose registration is deleted",
        Change(
            "kubefoundry_selector.registry",
            (
                "        entry = self._entries.get(name)\n"
                "        if entry is None:\n            return False\n        until"
            ),
            "        entry = self._entries.pop(name, None)\n        return entry is not None\n        until",
        ),
    ),
    "T13": _mutation(
        "after an outage, models wait for minutes",
        Change(
            "kubefoundry_sdk._runtime.backoff", "OUTAGE_DELAY: Final = 15.0", "OUTAGE_DELAY: Final = 300.0"
        ),
        Change("kubefoundry_sdk._runtime.backoff", "FAULT_DELAY: Final = 60.0", "FAULT_DELAY: Final = 300.0"),
    ),
    "T14": _mutation(
        "a finalizer of a provider that never was is waited for",
        Change("kubefoundry_core.orphans", "0.0 if finalizer in invented else max(", "max("),
    ),
    "F1": _mutation(
        "Ready names a generation that was refused or not written",
        Change(
            f"{_RECONCILE}.reported_generation",
            "if generations.applied != (version[0], snapshot.report.generation):",
            "if False:",
        ),
    ),
    "F1b": _mutation(
        "Dynamo's rollouts are not seen",
        Change(
            "kubefoundry_dynamo.observe",
            'updating=phase == "Running" and not status.failed and _updating(status),',
            "updating=False,",
        ),
    ),
    "F1c": _mutation(
        "KubeRay's rollouts are not seen",
        Change(
            "kubefoundry_kuberay.observe",
            "updating=serving and failure is None and _updating(status),",
            "updating=False,",
        ),
    ),
    "F1d": _mutation(
        "an edit counts as picked up at once",
        Change(f"{_RECONCILE}.reported_generation", "    if not processed:", "    if False:"),
        Change(
            f"{_RECONCILE}.reported_generation",
            'return (f"waiting for the status of {reporter} to settle", left) if left > 0 else None',
            "return None",
        ),
    ),
    "F2": _mutation(
        "a role with 0 replicas is not needed",
        Change(
            "kubefoundry_dynamo.observe",
            "elif absent := [pool.role for pool in workers if not pool.replicas]:",
            "elif absent := []:",
        ),
        Change("kubefoundry_dynamo.supports", "        if pool.replicas == 0:", "        if False:"),
    ),
    "F3": _mutation(
        "a name that is too long for a worker is accepted",
        Change(
            "kubefoundry_dynamo.supports", 'WORKER_HASH: Final = len("-01234567")', "WORKER_HASH: Final = 0"
        ),
    ),
    "F4": _mutation(
        "an error of Dynamo that passes is a failure",
        Change(
            "kubefoundry_dynamo.observe",
            "passing = erred and any(part in words for part in PASSING)",
            "passing = False",
        ),
    ),
    "F5": _mutation(
        "a failure that only Ready's generation names is not seen",
        Change(
            "kubefoundry_dynamo.observe",
            "newest = max(count(seen) or 0, ready.generation)",
            "newest = count(seen) or 0",
        ),
        missed="the simulated operator is Dynamo 1.4, which writes both generations",
    ),
    "F6": _mutation(
        "more replicas are ready than requested",
        Change(
            "kubefoundry_dynamo.observe", "ready += min(pods.ready, pool.replicas)", "ready += pods.ready"
        ),
    ),
    "F7": _mutation(
        "a webhook that has not started refuses for good",
        Change("kubefoundry_sdk._runtime.refusals", "PASSING: Final = 30.0", "PASSING: Final = 0.0"),
        Change(
            "kubefoundry_sdk._runtime.refusals", "            backoff.FAULT_DELAY,\n", "            RETRY,\n"
        ),
    ),
    "S1": _mutation(
        "core releases a condition of which somebody owns a part",
        Change("kubefoundry_sdk._runtime.status", "if error.code != 422 or not released:", "if True:"),
    ),
    "S2": _mutation(
        "a process takes the object of a deleted model for that of the next one",
        Change(f"{_RECONCILE}.context", "if self._uids.setdefault(key, uid) != uid:", "if False:"),
    ),
    "C1": _mutation(
        "a hand-over deletes before the chosen provider has accepted",
        Change(
            f"{_RECONCILE}.deletion",
            "if why := release.obstacle(live, context.manager, has_our_messages=has_our_messages):",
            'if why := "":',
        ),
    ),
    "C2": _mutation(
        "a status is written again although nothing differs",
        Change(
            "kubefoundry_sdk._runtime.status",
            "    if not store.altered.text(key) and same(live, desired, manager, shared):\n",
            "    if False:\n",
        ),
    ),
    "C3": _mutation(
        "the upstream object is created before the finalizer",
        Change(f"{_RECONCILE}.reconciler", "    writes.add_finalizer,\n", ""),
    ),
    "C4": _mutation(
        "a change of identity is not tried before the deletion",
        Change(f"{_RECONCILE}.recreate", "await apply.try_replacement(", "await _untried("),
        Change(
            f"{_RECONCILE}.recreate",
            "async def start(",
            "async def _untried(*arguments: object, **options: object) -> None:\n    pass\n\n\nasync def start(",
        ),
    ),
}
"""The defects of findings T and F by their ids; S were found by the simulation; C break a rule of the contract."""


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with changes."""

    def __init__(self, name: str, path: str, changes: Sequence[Change]) -> None:
        super().__init__(name, path)
        self._changes = changes

    def get_code(self, fullname: str):  # type: ignore[no-untyped-def]  # the type of code objects
        """Return the code of the changed source. Raise LookupError if a change does not fit."""
        text = Path(self.path).read_text(encoding="utf-8")
        for change in self._changes:
            if change.old not in text:
                raise LookupError(f"{fullname} has no longer: {change.old}")
            text = text.replace(change.old, change.new)
        return compile(text, self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that a mutation changes."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the changed module."""
        changes = [change for change in self._changes if change.module == fullname]
        if not changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise LookupError(f"there is no module {fullname}")
        loader = _Loader(fullname, spec.origin, changes)
        return importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader)


def put_back(name: str) -> None:
    """Change the sources before their modules are imported."""
    changes = MUTATIONS[name].changes
    loaded = {change.module for change in changes} & sys.modules.keys()
    if loaded:
        raise RuntimeError(f"{', '.join(sorted(loaded))} is imported already")
    sys.meta_path.insert(0, _Finder(changes))
