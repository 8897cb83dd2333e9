"""`kubefoundry doctor`: checks of the installation and of the models on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import click

from kubefoundry_cli import cluster, output, support_bundle
from kubefoundry_cli.checks.examination import examine, examine_model
from kubefoundry_cli.checks.finding import Finding, Unlisted
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean, say

SIGNS: Final = {"good": "✔", "wrong": "✗", "pending": "…", "unknown": "?"}


@click.command()
@click.argument("name", required=False)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Models of all namespaces.")
@click.option(
    "--bundle",
    "file",
    metavar="FILE",
    help="Also write what a maintainer needs as a tar.gz, without secrets.",
)
@output.option("table", "json", "yaml")
@cluster.options
def command(name: str | None, everywhere: bool, file: str | None, form: str, target: Target) -> None:
    """Check the installation: API server, components, providers, and the models of a namespace.

    With NAME, check one model: why it does not serve what is asked for, and what to do.

    Exit code 1 when something is wrong, 5 when you may not list the models, or may read nothing. Three dots mark a
    model that starts or is being updated, a question mark what you may not read.
    """
    if name is not None and (everywhere or file):
        raise Failure("a model's name goes with neither -A nor --bundle", Exit.USAGE)
    findings = cluster.run(_examined(everywhere, file, target) if name is None else _about(name, target))
    if form == "table":
        for finding in findings:
            print(f"{SIGNS[finding.state]} {clean(finding.text)}")
    else:
        output.data([asdict(finding) for finding in findings], form)
    raise SystemExit(exit_code(findings, of_model=name is not None))


def exit_code(findings: Sequence[Finding], *, of_model: bool) -> Exit:
    """Return the exit code for the findings about the installation, or about one model."""
    states = [finding.state for finding in findings]
    if "wrong" in states:
        return Exit.NO
    if any(isinstance(finding, Unlisted) for finding in findings):
        # Everybody may read the registered providers, so good findings about them do not change the exit code.
        return Exit.FORBIDDEN
    # About the installation, the first finding only says that the API server answers.
    readable = {"good", "pending"} & set(states if of_model else states[1:])
    return Exit.FORBIDDEN if "unknown" in states and not readable else Exit.YES


async def _examined(everywhere: bool, file: str | None, target: Target) -> list[Finding]:
    if file is not None:
        support_bundle.writable(file)
    async with cluster.session(target) as session:
        namespace = None if everywhere else session.namespace
        findings = await examine(session, namespace)
        if file is not None:
            content = await support_bundle.collected(
                session, namespace, [asdict(finding) for finding in findings]
            )
            support_bundle.write(file, content)
            say(f"wrote {file}; look through it before you send it")
        return findings


async def _about(name: str, target: Target) -> list[Finding]:
    async with cluster.session(target) as session:
        return await examine_model(session, await session.model(name))
