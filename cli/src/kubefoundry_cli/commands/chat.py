"""`kubefoundry chat`: one question, the answer as it is made."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.endpoint import proxy, refused
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.output import say
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.provider.health.models_endpoint import LIMIT


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
    """
    question = " ".join(prompt) or sys.stdin.read()
    if not question.strip():
        raise Failure("no question given; write it after the name", Exit.USAGE)
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": question})
    cluster.run(_chat(name, messages, max_tokens, target))


async def _chat(name: str, messages: list[dict[str, str]], most: int | None, target: Target) -> None:
    async with cluster.session(target) as session:
        _, url = await proxy(session, name)
        try:
            listed = await session.client.read(f"{url}/v1/models", most=LIMIT)
            body: dict[str, Any] = {"model": served(listed, name), "messages": messages, "stream": True}
            if most is not None:
                body["max_tokens"] = most
            async for line in session.client.lines(f"{url}/v1/chat/completions", body):
                print(_token(line), end="", flush=True)
        except ApiError as error:
            raise refused(error, name) from error
        except Unreachable as error:
            raise of(error, f"chat with '{name}'") from error
    print()


def served(listed: Any, name: str) -> str:
    """The id under which the endpoint serves the model. Raises Failure where it serves none."""
    found = listed.get("data") if isinstance(listed, dict) else None
    ids = [one.get("id") for one in found or () if isinstance(one, dict)]
    if not ids or not isinstance(ids[0], str):
        raise Failure(f"the endpoint of '{name}' lists no model; is it an OpenAI-compatible server?")
    return ids[0]


def _token(line: bytes) -> str:
    """The text of one server-sent event, empty for one without any."""
    text = line.decode(errors="replace").removeprefix("data:").strip()
    if not line.startswith(b"data:") or text == "[DONE]":
        return ""
    try:
        choice = json.loads(text)["choices"][0]
        return str(choice.get("delta", {}).get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        say(f"cannot read part of the answer: {text[:200]}")
        return ""
