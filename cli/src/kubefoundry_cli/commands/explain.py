"""`kubefoundry explain`: every provider and rule, the values that decided, and what would have to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kubefoundry_cli import cluster, output
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.hint import hint
from kubefoundry_cli.model import edited, from_file, valid
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.requested import Requested, registered_configs, requested
from kubefoundry_cli.selection import Stored, asked, foreseen, pending, registered_packages, stored
from kubefoundry_cli.upstream import problems
from kubefoundry_cli.what_if import Verdict, verdicts
from kubefoundry_sdk.api.kinds import Object

if TYPE_CHECKING:
    from kubefoundry_selector.candidate import Provider
    from kubefoundry_selector.explain import Explanation, ProviderVerdict, RuleVerdict
    from kubefoundry_selector.select import Decision


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--file", metavar="FILE", help="A ModelDeployment; - reads standard input.")
@click.option("--set", "edits", multiple=True, metavar="PATH=VALUE", help="Edit a field of the spec first.")
@click.option(
    "--offline",
    is_flag=True,
    help="Do not contact a cluster: use the provider packages installed with this command.",
)
@output.option("table", "json", "yaml")
@cluster.options
def command(
    name: str | None, file: str | None, edits: tuple[str, ...], offline: bool, form: str, target: Target
) -> None:
    """Show why a provider is chosen for a model, and what would have to change for another one.

    \b
    kubefoundry explain llama-8b
    kubefoundry explain -f llama-8b.yaml --set resources.gpu.count=0 --offline

    A provider that refuses the model in the words of its package is left out, as the selector does it in a cluster.
    Exit code 1 when no provider would run it.
    """
    from kubefoundry_cli.providers import as_running_all, installed
    from kubefoundry_selector.candidate import provider as registered
    from kubefoundry_selector.explain import explain

    if bool(name) == bool(file):
        raise Failure("name a model, or give a file with -f", Exit.USAGE)
    if offline and name:
        raise Failure("--offline needs a file: -f FILE", Exit.USAGE)
    packages, notes = installed(), list[str]()
    if offline:
        assert file is not None
        asked_for, known = valid(edited(from_file(file), edits)), registered_packages(packages)
        live, is_edit = None, False
    else:
        found_model, configs = cluster.run(_read(name, file, edits, target))
        live, asked_for, is_edit = found_model.live, found_model.obj, found_model.is_edit
        packages, notes = as_running_all(packages, configs)
        known = [registered(config) for config in configs]
    is_decided = not is_edit and bool(stored(asked_for) or pending(asked_for))
    decided = asked_for if is_decided or live is None else foreseen(asked_for, known, packages)
    kept, waits = (stored(decided), pending(decided)) if live else (None, None)
    explanation = explain(asked(asked_for, known, packages, kept.left_out if kept else ()), known)
    named = (asked_for["spec"].get("provider") or {}).get("name")
    chosen = named or (kept.provider if kept else explanation.decision.provider)
    found = verdicts(asked_for, known, packages, chosen=chosen)
    package = packages.get(named or "")
    refusals = problems(package, asked_for, None) if package else ()
    unknown = bool(named) and named not in {one.name for one in known}
    for note in notes:
        say(f"note: {note}")
    if form == "table":
        if named:
            _show_named(named, unknown, refusals, known, explanation.decision)
        else:
            _show_selected(asked_for["metadata"]["name"], kept, waits, explanation.decision, is_edit)
        _show(explanation, bool(named), found)
    else:
        output.data(
            {
                "named": named,
                "selected": None if named or kept is None else kept.to_json(),
                "pending": None if named else waits,
                **explanation.to_json(),
                "verdicts": [one.to_json() for one in found],
            },
            form,
        )
    if not chosen or unknown or refusals:
        raise SystemExit(Exit.NO)


async def _read(
    name: str | None, file: str | None, edits: tuple[str, ...], target: Target
) -> tuple[Requested, list[Object]]:
    async with cluster.session(target) as session:
        return await requested(session, name, file, edits), await registered_configs(session)


def _show_named(
    named: str, unknown: bool, refusals: Sequence[str], known: Sequence[Provider], decision: Decision
) -> None:
    print(
        clean(f"{named} is named by spec.provider.name; the rules would select {decision.provider or 'none'}")
    )
    if unknown:
        there = ", ".join(sorted(one.name for one in known)) or "none"
        print(clean(f"{named} is not registered (registered: {there}), so nothing runs this model"))
    for refusal in refusals:
        print(clean(f"{named} refuses it: {refusal}"))


def _show_selected(
    name: str, kept: Stored | None, waits: str | None, decision: Decision, is_edit: bool
) -> None:
    after = "after this edit, " if is_edit else ""
    if kept:
        print(clean(f"{after}{kept}"))
    if waits:
        print(clean(f"{after}no provider is selected for this spec: {waits}"))
    if waits and decision.provider:
        print(clean(f"the rules, with the providers as they are now: {decision.text}"))
    elif not waits and kept is None:
        print(clean(decision.text))
    elif not waits and kept is not None and kept.provider != decision.provider:
        print(
            clean(
                f"it would be selected differently now: {decision.text}; {hint('reselect ' + name)} does that"
            )
        )


def _show(explanation: Explanation, named: bool, found: Sequence[Verdict]) -> None:
    print()
    rows = []
    for provider in explanation.providers:
        for rule in provider.rules:
            result = result_of(rule, provider)
            mark = " ← decides" if rule.decided and not named else ""
            rows.append(
                (provider.provider, str(rule.priority), f"{result}{mark}", values_read(rule), rule.condition)
            )
        if not provider.rules:
            rows.append((provider.provider, "-", "selected only by name", "", "(no rules)"))
    output.table(("PROVIDER", "PRIORITY", "RESULT", "READ", "RULE"), rows)
    print()
    for verdict in found:
        print(clean(verdict.text))


def values_read(rule: RuleVerdict) -> str:
    """`engine.type=vllm, image=absent`."""
    return ", ".join(
        f"{path.removeprefix('spec.')}={'absent' if value is None else value}"
        for path, value in rule.values.items()
        if not isinstance(value, dict)
    )


def result_of(rule: RuleVerdict, provider: ProviderVerdict) -> str:
    """Whether the rule matched and, where that does not help its provider, why."""
    if provider.exclusions and rule.outcome == "matched":
        first = provider.exclusions[0]
        # its words are long, and come below the table
        why = "refuses it" if first.check == "refused" else first.text
        return f"matched, but {provider.provider} {why}"
    return rule.problem or rule.outcome
