"""`kubefoundry explain`: every provider and rule, the values that decided, and what would have to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kubefoundry_cli import cluster, output
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.model import edited, from_file, valid
from kubefoundry_cli.output import clean
from kubefoundry_cli.what_if import Verdict, verdicts
from kubefoundry_sdk.api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

if TYPE_CHECKING:
    from kubefoundry_selector.explain import ProviderVerdict, RuleVerdict


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

    Exit code 1 when no provider would be chosen.
    """
    from kubefoundry_cli.providers import installed
    from kubefoundry_selector.candidate import provider as registered
    from kubefoundry_selector.candidate import request
    from kubefoundry_selector.explain import explain

    if bool(name) == bool(file):
        raise Failure("name a model, or give a file with -f", Exit.USAGE)
    if offline and name:
        raise Failure("--offline needs a file: -f FILE", Exit.USAGE)
    packages = installed()
    if offline:
        assert file is not None
        obj, configs = from_file(file), [_registered(package) for package in packages.values()]
    else:
        obj, configs = cluster.run(_read(name, file, target))
    obj = valid(edited(obj, edits))
    known = [registered(config) for config in configs]
    explanation = explain(request(obj), known)
    named = (obj["spec"].get("provider") or {}).get("name")
    found = verdicts(obj, known, packages, chosen=named or explanation.decision.provider)
    if form == "table":
        _show(explanation, named, found)
    else:
        output.data(
            {"named": named, **explanation.to_json(), "verdicts": [one.to_json() for one in found]}, form
        )
    if not (named or explanation.decision.provider):
        raise SystemExit(Exit.NO)


async def _read(name: str | None, file: str | None, target: Target) -> tuple[Object, list[Object]]:
    async with cluster.session(target) as session:
        obj = await session.model(name) if name else from_file(str(file), session.namespace)
        try:
            configs, _ = await session.client.list(PROVIDER_CONFIGS)
        except (ApiError, Unreachable) as error:
            raise of(error, "list InferenceProviderConfigs") from error
        return obj, configs


def _registered(package: Any) -> Object:
    from kubefoundry_sdk.provider.registration import registration

    return {**registration(package), "status": {"ready": True}}


def _show(explanation: Any, named: str | None, found: list[Verdict]) -> None:
    decision = explanation.decision
    if named:
        print(f"{named} is named by spec.provider.name; the rules would select {decision.provider or 'none'}")
    else:
        print(clean(decision.text))
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
        return f"matched, but {provider.provider} {provider.exclusions[0].text}"
    return rule.problem or rule.outcome
