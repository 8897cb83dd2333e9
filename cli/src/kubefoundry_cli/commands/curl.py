"""`kubefoundry curl`: a request to the endpoint, and its answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.endpoint import proxy, refused, unusable
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import write_foreign
from kubefoundry_sdk._api.foreign_text import shown
from kubefoundry_sdk._cluster.errors import Unreachable
from kubefoundry_sdk._cluster.service_proxy import Refused


@click.command()
@click.argument("name")
@click.argument("path", default="/v1/models")
@click.option(
    "-d", "--data", metavar="JSON", help="POST this body; @FILE reads a file, @- reads standard input."
)
@cluster.options
def command(name: str, path: str, data: str | None, target: Target) -> None:
    """Send a request to PATH of a model's endpoint, through the API server: GET, or POST with -d.

    \b
    kubefoundry curl llama-8b /v1/models
    kubefoundry curl llama-8b /v1/completions -d '{"model": "llama-8b", "prompt": "Hello"}'
    """  # noqa: D301
    if sys.stdout is None:
        raise Failure("standard output is closed: there is nowhere to print the answer", Exit.USAGE)
    if {".", ".."} & set(unquote(path.partition("?")[0]).split("/")):
        # An HTTP client removes such a step, so that another path of the API server would be requested.
        raise Failure(f"{shown(path)} has a step of dots: write the path without it", Exit.USAGE)
    cluster.run(_curl(name, "/" + path.lstrip("/"), _body(data), target))


def _body(data: str | None) -> Any:
    if data is None:
        return None
    try:
        text = data
        if data.startswith("@"):
            text = sys.stdin.read() if data == "@-" else Path(data[1:]).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise Failure(f"cannot read {data[1:]}: {error.strerror}", Exit.USAGE) from error
    except ValueError as error:
        raise Failure(f"-d is not JSON: {error}", Exit.USAGE) from error


async def _curl(name: str, path: str, body: Any, target: Target) -> None:
    async with cluster.session(target) as session:
        service = await proxy(session, name)
        try:
            async for line in service.lines(path, body):
                write_foreign(line)
        except Refused as error:
            raise await refused(service, error.reply, name, posts=body is not None) from error
        except Unreachable as error:
            raise unusable(error, f"reach '{name}'") from error
