"""`run`: a provider as a process. A provider's console script has nothing else to call."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.controller import Controller
from kubefoundry_sdk.provider.flags import started_with
from kubefoundry_sdk.provider.health.staleness import THRESHOLD
from kubefoundry_sdk.provider.health.verification import ANSWER
from kubefoundry_sdk.runtime import options, process
from kubefoundry_sdk.runtime.process import Process


def run(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the provider as `kubefoundry-provider-NAME` and return the exit code.

    build: the parsed flags -> the provider. `default_images` maps engines to images (`--default-image`). If it raises
        ValueError, the process exits with the error's text as its one-line message.
    """
    flags = parser(name)
    if add_arguments:
        add_arguments(flags)
    parsed = flags.parse_args(arguments)
    try:
        built = replace(build(parsed), flags=started_with(parsed, parser(name).parse_args([])))
        provider = placed(built, parsed.operator_namespace, parsed.operator_deployment)
    except ValueError as error:
        flags.error(str(error))
    return process.run(flags.prog, parsed, lambda running: set_up(running, provider))


def parser(name: str) -> argparse.ArgumentParser:
    """The flags of every provider (contract §6)."""
    made = options.parser(f"kubefoundry-provider-{name}", f"Deploys ModelDeployments on {name}.")
    options.finalizer_timeout(made)
    options.heartbeat_timeout(made)
    options.flag(
        made,
        "--stale-after",
        "seconds without a reaction of the upstream operator after which a status counts as stale",
        default=THRESHOLD,
        read=options.seconds,
    )
    options.flag(
        made,
        "--default-image",
        "ENGINE=IMAGE for ModelDeployments that name no image; separate several with commas",
        default="",
        read=images,
        action=_Merge,
        dest="default_images",
    )
    options.flag(
        made,
        "--verify-endpoint",
        "report a model as Running only once GET /v1/models on its endpoint lists it: true, false, or answer, "
        "which also requests one token",
        default="false",
        read=_verification,
        nargs="?",
        const="true",
    )
    options.flag(
        made,
        "--operator-namespace",
        "namespaces of the upstream operator, separated by commas; default: the namespace in its documentation",
        default="",
    )
    options.flag(
        made,
        "--operator-deployment",
        "name of the upstream operator's Deployment; default: the name in its documentation",
        default="",
    )
    return made


class _Merge(argparse.Action):
    """Each occurrence adds to the map; later ones win."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        # argparse parses a default that is a string only after the flags
        known = images(before) if isinstance(before, str) else before
        setattr(namespace, self.dest, {**known, **values})


def placed(provider: Provider, namespaces: str, deployment: str) -> Provider:
    """The provider with the upstream operator where an administrator says it is; empty: where it is documented."""
    operator = provider.operator
    if operator is None:
        return provider
    named = tuple(filter(None, namespaces.split(","))) or operator.namespaces
    placed = replace(operator, namespaces=named, deployment=deployment or operator.deployment)
    return replace(provider, operator=placed)


def _verification(text: str) -> str:
    """`true`, `false` or `answer`. Raises ArgumentTypeError for anything else."""
    return ANSWER if text == ANSWER else str(options.boolean(text)).lower()


def images(text: str) -> dict[str, str]:
    """`vllm=repo/image:tag,sglang=…`. Raises ArgumentTypeError for anything else."""
    found = {}
    for pair in filter(None, text.split(",")):
        engine, separator, image = pair.partition("=")
        if not (engine and separator and image):
            raise argparse.ArgumentTypeError(f"{pair!r} is not ENGINE=IMAGE")
        found[engine] = image
    return found


def set_up(running: Process, provider: Provider) -> None:
    """Wire the provider to a process that is not running yet."""
    Controller(running, provider)
