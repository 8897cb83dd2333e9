"""Explain a selection: every provider and rule, the values that decided, and the changes to select another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.engine import on_engine
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.providers import as_running_all, in_cluster, installed, published_settings
from kubefoundry_cli.requested import Requested, all_requested, registered_configs
from kubefoundry_cli.selection import Stored, foreseen, pending, settled, stored, with_denials
from kubefoundry_cli.several import Failures
from kubefoundry_cli.suspension import deletion, pause
from kubefoundry_cli.upstream import problems
from kubefoundry_cli.what_if import Verdict, verdicts
from kubefoundry_sdk._api.engine_choice import effective_engine, engine_for
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.reasons import VALIDATED
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider as Package
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_selector.candidate import Provider
from kubefoundry_selector.candidate import provider as registered
from kubefoundry_selector.explain import Explanation, ProviderVerdict, RuleVerdict, explain


@dataclass(frozen=True, slots=True)
class Answer:
    """The selection for a ModelDeployment.

    Attributes:
        requested: The ModelDeployment.
        providers: The registered providers.
        packages: The installed provider packages, with the flags of the registered providers.
        named: The provider that the spec names.
        selection: The selection that the cluster stores for the spec, or will store after an edit.
        foreseen: The selection, also where the selector has not decided on the stored spec yet.
        waits: Why the cluster selects no provider, or has not selected one yet.
        explanation: The rules with the values that they read.
        verdicts: The verdict on each other provider, with the change that would select it.
        notes: Notes for the user, for example that a provider runs another version than its package here.
    """

    requested: Requested
    providers: Sequence[Provider]
    packages: Mapping[str, Package]
    named: str | None
    selection: Stored | None
    foreseen: Stored | None
    waits: str | None
    explanation: Explanation
    verdicts: Sequence[Verdict]
    notes: Sequence[str]

    @property
    def chosen(self) -> str | None:
        """Return the provider that is to run the model."""
        return _chosen(self.named, self.foreseen, self.explanation)

    @property
    def is_unregistered(self) -> bool:
        """Check whether the spec names a provider that is not registered."""
        return bool(self.named) and self.named not in {provider.name for provider in self.providers}

    @property
    def deletion(self) -> str | None:
        """Describe the deletion of the stored model and its finalizers. Return None if it is not being deleted."""
        return deletion(self.requested.live) if self.requested.live else None

    def refusals(self, schema: Schema | None) -> tuple[str, ...]:
        """Return why the chosen provider refuses the model; empty if it accepts, or its package is not installed."""
        package = self.packages.get(self.chosen or "")
        return problems(package, self.requested.obj, schema) if package else ()

    def to_json(self, refusals: Sequence[str]) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        meta = self.requested.obj["metadata"]
        return {
            "namespace": meta["namespace"],
            "name": meta["name"],
            "deletion": self.deletion,
            "named": self.named,
            "selected": None if self.named or self.selection is None else self.selection.to_json(),
            "pending": None if self.named else self.waits,
            "refusals": [*refusals],
            **self.explanation.to_json(),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


Explained = tuple[Answer, tuple[str, ...]]
"""An answer, and the chosen provider's refusals."""


def _chosen(named: str | None, selection: Stored | None, explanation: Explanation) -> str | None:
    return named or (selection.provider if selection else explanation.decision.provider)


def explained(
    requested: Requested,
    providers: Sequence[Provider],
    packages: Mapping[str, Package],
    notes: Sequence[str] = (),
) -> Answer:
    """Return the selection for a ModelDeployment among the registered providers, with the installed packages."""
    obj, live = requested.obj, requested.live
    providers = with_denials(obj, providers)
    is_decided = not requested.is_edit and bool(stored(obj) or pending(obj))
    decided = obj if is_decided or live is None else foreseen(obj, providers, packages)
    expected, waits = (stored(decided), pending(decided)) if live else (None, None)
    left_out = expected.left_out if expected else ()
    attempt, decision = settled(obj, providers, packages, left_out)
    explanation = explain(attempt, providers)
    if not attempt.is_engine_named:
        explanation = replace(explanation, decision=decision)
    named = LiveModelDeployment(obj).requested_provider
    waits_for = _undecided(obj) if expected and not is_decided and not requested.is_edit else None
    obj = on_engine(
        obj, effective_engine(decided) or (_named_engine(obj, named, providers) or attempt.engine)
    )
    requested = replace(requested, obj=obj)
    provider_verdicts = verdicts(obj, providers, packages, chosen=_chosen(named, expected, explanation))
    selection = expected
    if waits_for:
        selection, waits = None, f"{waits_for}; after that, {expected}"
    return Answer(
        requested,
        providers,
        packages,
        named,
        selection,
        expected,
        waits,
        explanation,
        provider_verdicts,
        notes,
    )


def _named_engine(obj: Object, named: str | None, providers: Sequence[Provider]) -> str | None:
    """Return the engine that core selects for the provider that the spec names, None if that is unknown."""
    return engine_for(obj, named, {offered.name: offered.engines for offered in providers}) if named else None


def _undecided(obj: Object) -> str:
    """Return why the selector has not decided on the stored spec."""
    live = LiveModelDeployment(obj)
    if live.is_paused:
        return pause(obj)
    validated = live.condition(VALIDATED) or {}
    is_current = validated.get("observedGeneration") == live.generation
    if is_current and validated.get("status") == "False" and validated.get("message"):
        return str(validated["message"])
    return "the selector has not decided yet"


async def explained_in_cluster(
    name: str | None, file: str | None, edits: tuple[str, ...], target: Target, failures: Failures
) -> list[Explained | None]:
    """Return an answer for each model; None if there is none. Raises Failure."""
    answers = list[Explained | None]()
    async with cluster.session(target) as session:
        configs: list[Object] | None = None
        for model in await all_requested(session, name, file, edits):
            answers.append(None)
            with failures.of_one():
                asked_for = await model()
                configs = await registered_configs(session) if configs is None else configs
                answers[-1] = await _explained_in_cluster(session, asked_for, configs)
    return answers


async def _explained_in_cluster(session: Session, model: Requested, configs: Sequence[Object]) -> Explained:
    """Return the answer for the registered providers, and the chosen provider's refusals. Raises Failure."""
    packages, notes = as_running_all(installed(), configs)
    notes = [*model.notes, *notes]
    answer = explained(model, [registered(config) for config in configs], packages, notes)
    package = packages.get(answer.chosen or "")
    if package is None or answer.is_unregistered:
        return answer, ()
    published = next(
        (published_settings(config) for config in configs if config["metadata"]["name"] == package.name),
        None,
    )
    try:
        schema, _ = await in_cluster(session.client, package, published)
    except (ApiError, Unreachable) as error:
        raise of(error, f"read CRD {package.upstream.crd}") from error
    except Failure as failure:
        if failure.exit_code == Exit.FORBIDDEN:
            # Judge without the CRD, as the selector does.
            return answer, answer.refusals(None)
        return answer, (failure.message,)
    return answer, answer.refusals(schema)


def values_read(rule: RuleVerdict) -> str:
    """Return the values that a rule read: `engine.type=vllm, image=absent`."""
    return ", ".join(
        f"{path.removeprefix('spec.')}={'absent' if value is None else value}"
        for path, value in rule.values.items()
        if not isinstance(value, dict)
    )


def result_of(rule: RuleVerdict, provider: ProviderVerdict) -> str:
    """Return whether the rule matched, and why its provider is not selected in spite of a match."""
    if provider.exclusions and rule.outcome == "matched":
        first = provider.exclusions[0]
        # The refusals are long, so they are printed outside the table.
        why = "refuses it" if first.check == "refused" else first.text
        return f"matched, but {provider.provider} {why}"
    return rule.problem or rule.outcome
