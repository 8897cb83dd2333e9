"""`run` runs a provider as a process. A provider's console script calls nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kubefoundry_sdk._provider import pod_defaults, propagation
from kubefoundry_sdk._provider.contract import Propagation, Provider
from kubefoundry_sdk._provider.controller import Controller
from kubefoundry_sdk._provider.flags import started_with
from kubefoundry_sdk._provider.health.staleness import THRESHOLD
from kubefoundry_sdk._provider.health.verification import ANSWER
from kubefoundry_sdk._runtime import options, process
from kubefoundry_sdk._runtime.process import Process


def run(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the provider as `kubefoundry-provider-NAME` and return the exit code.

    Args:
        name: The provider's name.
        build: Returns the provider for the parsed flags, in which `default_images` maps engines to images
            (`--default-image`). If it raises ValueError, the process exits with the error's text as its one-line
            message.
        add_arguments: Adds the provider's own flags to the parser.
        arguments: The arguments; None for those of the process.
    """
    options, set_up = prepared(name, build, add_arguments, arguments)
    return process.run(f"kubefoundry-provider-{name}", options, set_up)


def prepared(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None,
    arguments: Sequence[str] | None,
) -> tuple[argparse.Namespace, process.SetUp]:
    """Return the flags and the set-up of a provider's process. For the arguments, see `run`."""
    flags = parser(name)
    if add_arguments:
        add_arguments(flags)
    parsed = flags.parse_args(arguments)
    try:
        # Defaults from the environment are values that the process was started with.
        with options.without_variables():
            defaults = parser(name).parse_args([])
        built = replace(
            build(parsed),
            propagates=propagation.stated(parsed),
            pod_defaults=pod_defaults.stated(parsed),
            flags=started_with(parsed, defaults),
        )
        provider = placed(built, parsed.operator_namespace, parsed.operator_deployment)
    except ValueError as error:
        flags.error(str(error))
    return parsed, lambda running: set_up(running, provider)


def parser(name: str) -> argparse.ArgumentParser:
    """Return a parser with the flags of every provider (contract §6)."""
    flag_parser = options.parser(f"kubefoundry-provider-{name}", f"Deploys ModelDeployments on {name}.")
    options.finalizer_timeout(flag_parser)
    options.heartbeat_timeout(flag_parser)
    options.flag(
        flag_parser,
        "--stale-after",
        "time without a reaction of the upstream operator after which a status counts as stale: 90s, 5m or a number "
        "of seconds",
        default=f"{THRESHOLD:g}s",
        read=options.duration,
    )
    options.flag(
        flag_parser,
        "--default-image",
        "ENGINE=IMAGE for ModelDeployments that name no image; separate several with commas",
        default="",
        read=images,
        action=_Merge,
        dest="default_images",
    )
    defaults = Propagation()
    for part, listed in (("labels", defaults.labels), ("annotations", defaults.annotations)):
        options.flag(
            flag_parser,
            f"--propagate-{part}",
            f"keys of {part} that pass from a ModelDeployment to its upstream object, separated by commas",
            default=",".join(listed),
            read=propagation.keys,
        )
    _add_pod_defaults(flag_parser)
    options.flag(
        flag_parser,
        "--verify-endpoint",
        "report a model as Running only once GET /v1/models on its endpoint lists it: true, false, or answer, "
        "which also requests one token",
        default="false",
        read=_verification,
        nargs="?",
        const="true",
    )
    options.flag(
        flag_parser,
        "--operator-namespace",
        "namespaces of the upstream operator, separated by commas; default: the namespace in its documentation",
        default="",
    )
    options.flag(
        flag_parser,
        "--operator-deployment",
        "name of the upstream operator's Deployment; default: the name in its documentation",
        default="",
    )
    return flag_parser


def _add_pod_defaults(flag_parser: argparse.ArgumentParser) -> None:
    """Add the flags for the pods of models (`pod_defaults`)."""
    for name, text, read in (
        (
            "--pod-hf-endpoint",
            "HF_ENDPOINT of the pods of models: URL of a mirror of the Hugging Face hub",
            pod_defaults.url,
        ),
        ("--pod-http-proxy", "HTTP_PROXY of the pods of models", pod_defaults.url),
        ("--pod-https-proxy", "HTTPS_PROXY of the pods of models", pod_defaults.url),
        (
            "--pod-no-proxy",
            f"NO_PROXY of the pods of models; with a proxy, the default is {pod_defaults.IN_CLUSTER}",
            pod_defaults.hosts,
        ),
        (
            "--pod-ca-bundle",
            "CONFIGMAP/KEY with the certificate authorities that the pods of models trust, in the model's namespace",
            pod_defaults.ca_bundle,
        ),
    ):
        options.flag(flag_parser, name, text, default="", read=read)


class _Merge(argparse.Action):
    """Add each occurrence of the flag to the map. A later value replaces an earlier one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        # a default is still a string here: argparse parses it only after the flags
        earlier = images(before) if isinstance(before, str) else before
        setattr(namespace, self.dest, {**earlier, **values})


def placed(provider: Provider, namespaces: str, deployment: str) -> Provider:
    """Return the provider with the upstream operator's namespaces and Deployment that an administrator names.

    An empty text means the documented value.
    """
    operator = provider.operator
    if operator is None:
        return provider
    named = tuple(filter(None, namespaces.split(","))) or operator.namespaces
    placed = replace(operator, namespaces=named, deployment=deployment or operator.deployment)
    return replace(provider, operator=placed)


def _verification(text: str) -> str:
    """Return `true`, `false` or `answer`. Raise ArgumentTypeError for any other text."""
    return ANSWER if text == ANSWER else str(options.boolean(text)).lower()


def images(text: str) -> dict[str, str]:
    """Return the images of `vllm=repo/image:tag,sglang=…` by engine. Raise ArgumentTypeError for any other text."""
    images_by_engine = {}
    for pair in filter(None, text.split(",")):
        engine, separator, image = pair.partition("=")
        if not (engine and separator and image):
            raise argparse.ArgumentTypeError(f"{pair!r} is not ENGINE=IMAGE")
        images_by_engine[engine] = image
    return images_by_engine


def set_up(running: Process, provider: Provider) -> None:
    """Connect the provider to a process that is not running yet."""
    Controller(running, provider)
