"""`kubefoundry chat`: one question, and the answer while it is generated."""

from __future__ import annotations

import sys

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.endpoint import answer
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import printable


@click.command()
@click.argument("name")
@click.argument("prompt", nargs=-1)
@click.option("--max-tokens", type=click.IntRange(min=1), default=None, help="Maximum length of the answer.")
@click.option("--system", metavar="TEXT", help="System message.")
@cluster.options
def command(
    name: str, prompt: tuple[str, ...], max_tokens: int | None, system: str | None, target: Target
) -> None:
    """Ask a model PROMPT; without one, standard input is the question. The answer is streamed.

    \b
    kubefoundry chat llama-8b "Why is the sky blue?"
    """  # noqa: D301
    question = " ".join(prompt) or sys.stdin.read()
    if not question.strip():
        raise Failure("no question given; write it after the name", Exit.USAGE)
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": question})
    cluster.run(_chat(name, messages, max_tokens, target))


async def _chat(name: str, messages: list[dict[str, str]], most: int | None, target: Target) -> None:
    async with cluster.session(target) as session:
        async for token in answer(session, name, messages, most):
            # A tab moves no further than spaces do, and code has tabs.
            print("\t".join(map(printable, token.split("\t"))), end="", flush=True)
    print()
