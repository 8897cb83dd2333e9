"""`kubefoundry deploy`: a ModelDeployment from a few options."""

from __future__ import annotations

from typing import Any

import click

from kubefoundry_cli import cluster, output
from kubefoundry_cli.cluster import Target
from kubefoundry_cli.commands.wait import KEEP_WAITING, until
from kubefoundry_cli.creation import URL, create, name_of
from kubefoundry_cli.edit import YES, confirmed
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.hint import hint
from kubefoundry_cli.model import completed, edited, valid_new
from kubefoundry_cli.output import say
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object


@click.command()
@click.argument("model")
@click.argument("name", required=False)
@click.option("--engine", default="vllm", show_default=True, help="vllm, sglang, trtllm or llamacpp.")
@click.option(
    "--gpus", type=click.IntRange(min=0), default=None, help="GPUs per replica. Default: 1; llamacpp: 0."
)
@click.option("--image", help="Engine image. Default: the provider's, where it has one for that engine.")
@click.option("--provider", help="Default: selected by the providers' rules.")
@click.option("--hf-secret", metavar="SECRET", help="Secret with key HF_TOKEN, for models that need a token.")
@click.option(
    "--set", "edits", multiple=True, metavar="PATH=VALUE", help="Set any other field of the spec; repeatable."
)
@click.option("--wait", "waits", is_flag=True, help="Wait up to ten minutes until it is ready.")
@KEEP_WAITING
@click.option("--dry-run", is_flag=True, help="Print the ModelDeployment and create nothing.")
@YES
@cluster.options
def command(
    model: str,
    name: str | None,
    engine: str,
    gpus: int | None,
    image: str | None,
    provider: str | None,
    hf_secret: str | None,
    edits: tuple[str, ...],
    waits: bool,
    keep_waiting: bool,
    dry_run: bool,
    yes: bool,
    target: Target,
) -> None:
    """Create a ModelDeployment for MODEL, a Hugging Face id such as Qwen/Qwen3-0.6B.

    If NAME is omitted, it is derived from MODEL.

    \b
    kubefoundry deploy Qwen/Qwen3-0.6B --wait
    kubefoundry deploy meta-llama/Llama-3.1-8B-Instruct llama --hf-secret hf-token --set engine.contextLength=8192
    """  # noqa: D301
    if url := URL.match(model):
        raise Failure(
            f"'{model}' is an address; give the model's id, {model[url.end() :].strip('/') or 'org/name'}",
            Exit.USAGE,
        )
    count = gpus if gpus is not None else (0 if engine == "llamacpp" else 1)
    spec = _spec(model, engine, count, image, provider, hf_secret)
    obj = edited(_object(name_of(model) if name is None else name, spec, target.namespace), edits)
    valid_new(completed(obj, "deploy"))
    if dry_run:
        output.documents([{**obj, "apiVersion": names.NEWEST_API_VERSION}])
        return
    cluster.run(_create(obj, waits, keep_waiting, yes, target))


def _spec(
    model: str, engine: str, gpus: int, image: str | None, provider: str | None, hf_secret: str | None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"model": {"id": model}, "engine": {"type": engine}}
    if gpus:
        spec["resources"] = {"gpu": {"count": gpus}}
    if image:
        spec["image"] = image
    if provider is not None:
        spec["provider"] = {"name": provider}
    if hf_secret is not None:
        spec["secrets"] = {"huggingFaceToken": hf_secret}
    return spec


def _object(name: str, spec: dict[str, Any], namespace: str | None) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": name, **where},
        "spec": spec,
    }


async def _create(obj: Object, waits: bool, keep_waiting: bool, yes: bool, target: Target) -> None:
    name = obj["metadata"]["name"]
    async with cluster.session(target) as session:
        obj = {**obj, "metadata": {"name": name, "namespace": session.namespace}}
        confirmed(
            f"create ModelDeployment '{name}' in namespace {session.namespace} on {session.client.server}",
            yes,
        )
        await create(session, obj)
        say(f"ModelDeployment '{name}' created in namespace {session.namespace}; {hint(f'status {name}')}")
        if waits:
            await until(session, name, "ready", 600.0, keep_waiting=keep_waiting)
