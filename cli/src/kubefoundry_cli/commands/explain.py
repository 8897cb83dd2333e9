"""`kubefoundry explain`: every provider and rule, the values that decided, and the changes to select another one."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kubefoundry_cli import cluster, output
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.explanation import (
    Answer,
    Explained,
    explained,
    explained_in_cluster,
    result_of,
    values_read,
)
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.model import all_from_file, valid_new
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.providers import installed
from kubefoundry_cli.requested import Requested, check_namespace
from kubefoundry_cli.selection import Stored, registered_packages
from kubefoundry_cli.several import Failures
from kubefoundry_cli.storage_claims import claim_notes
from kubefoundry_cli.what_if import Verdict
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_selector.explain import Explanation
from kubefoundry_selector.select import Decision


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--file", metavar="FILE", help="ModelDeployments; - reads standard input.")
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
    Exit code 1 when no provider would run it, or the one that would be used refuses it. Of a file with several
    models, each is explained, and the exit code is the worst.
    """  # noqa: D301
    _check_source(name, file, offline=offline)
    failures = Failures()
    models = (
        _offline(str(file), edits, target.namespace or "default", failures)
        if offline
        else cluster.run(explained_in_cluster(name, file, edits, target, failures))
    )
    answers = [model for model in models if model is not None]
    _print_notes(answers)
    if form == "table":
        _show_all(answers, with_names=len(models) > 1)
    else:
        documents = [answer.to_json(refusals) for answer, refusals in answers]
        output.one_or_all(documents, form, several=len(models) > 1)
    if not all(_is_runnable(*answer) for answer in answers):
        failures.note(Exit.NO)
    failures.end()


def _print_notes(answers: Sequence[Explained]) -> None:
    for answer, _ in answers:
        for note in (*answer.notes, *claim_notes(answer.requested.obj)):
            say(f"note: {note}")


def _check_source(name: str | None, file: str | None, *, offline: bool) -> None:
    if bool(name) == bool(file):
        raise Failure("name a model, or give a file with -f", Exit.USAGE)
    if offline and name:
        raise Failure("--offline needs a file: -f FILE", Exit.USAGE)


def _offline(file: str, edits: tuple[str, ...], namespace: str, failures: Failures) -> list[Explained | None]:
    """Return an answer for each model of the file among the installed packages; None if there is none.

    Args:
        file: The file.
        edits: Edits of its only model.
        namespace: The namespace of a model without one.
        failures: Takes the failure of each model.
    """
    packages, answers = installed(), list[Explained | None]()
    for obj in all_from_file(file, edits, namespace):
        answers.append(None)
        with failures.of_one():
            check_namespace(obj)
            answer = explained(Requested(None, valid_new(obj)), registered_packages(packages), packages)
            answers[-1] = (answer, answer.refusals(None))
    return answers


def _is_runnable(answer: Answer, refusals: Sequence[str]) -> bool:
    return bool(answer.chosen) and not answer.is_unregistered and not refusals


def _show_all(answers: Sequence[Explained], *, with_names: bool) -> None:
    for number, (answer, refusals) in enumerate(answers):
        if with_names:
            meta = answer.requested.obj["metadata"]
            print("\n" if number else "", end="")
            print(clean(f"ModelDeployment {meta['namespace']}/{meta['name']}"))
        _show_chosen(answer, refusals)
        _show(answer.explanation, bool(answer.named), answer.verdicts)


def _show_chosen(answer: Answer, refusals: Sequence[str]) -> None:
    decision = answer.explanation.decision
    if answer.deletion:
        print(clean(f"{answer.requested.obj['metadata']['name']} {answer.deletion}"))
    if answer.named:
        _show_named(answer, answer.named, decision)
    else:
        obj = answer.requested.obj
        after = "after this edit, " if answer.requested.is_edit else ""
        if after and LiveModelDeployment(obj).is_paused:
            after = "after this edit and a resume, "
        _show_selected(obj["metadata"]["name"], answer.selection, answer.waits, decision, after)
    for refusal in refusals:
        print(clean(f"{answer.chosen} refuses it: {refusal}"))


def _show_named(answer: Answer, named: str, decision: Decision) -> None:
    print(
        clean(f"{named} is named by spec.provider.name; the rules would select {decision.provider or 'none'}")
    )
    if answer.is_unregistered:
        registered_names = ", ".join(sorted(provider.name for provider in answer.providers)) or "none"
        current = provider_of(answer.requested.obj)
        so = (
            f"provider {current} keeps the model, and applies its edits"
            if current
            else "nothing runs this model"
        )
        print(clean(f"{named} is not registered (registered: {registered_names}), so {so}"))


def _show_selected(
    name: str, selection: Stored | None, waits: str | None, decision: Decision, after: str
) -> None:
    if selection:
        print(clean(f"{after}{selection}"))
    if waits:
        print(clean(f"{after}no provider is selected for this spec: {waits}"))
        if decision.provider:
            print(clean(f"the rules, with the providers as they are now: {decision.text}"))
    elif selection is None:
        print(clean(decision.text))
    elif selection.provider != decision.provider:
        print(
            clean(
                f"it would be selected differently now: {decision.text}; {hint('reselect ' + name)} does that"
            )
        )


def _show(explanation: Explanation, named: bool, provider_verdicts: Sequence[Verdict]) -> None:
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
    for verdict in provider_verdicts:
        print(clean(verdict.text))
