"""Define the options that the commands for installing and uninstalling share."""

from __future__ import annotations

import re

import click

from kubefoundry_cli.cluster import Target
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.seconds import seconds
from kubefoundry_sdk._api.images import REGISTRY as REGISTRY_PATTERN
from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE


def _registry(text: str) -> str:
    """Return the text. Raises BadParameter if it is neither a registry nor empty."""
    if text and not re.fullmatch(REGISTRY_PATTERN, text):
        raise click.BadParameter(f"{text!r} is not a registry such as registry.example.com/kubefoundry")
    return text


REGISTRY = click.option(
    "--registry", metavar="PREFIX", help="Where the images are, for example registry.example.com/kubefoundry."
)
MIRROR = click.option(
    "--mirror",
    type=_registry,
    metavar="PREFIX",
    help="A registry with copies of all images of `kubefoundry images`, default images of engines included; "
    "an empty text for none.",
)
WAIT = click.option(
    "--wait",
    type=seconds,
    metavar="DURATION",
    help="Wait until the processes are up, at most so long: 5m, 90s.",
)
FORCE = click.option(
    "--force-conflicts", "force", is_flag=True, help="Take over values that others have set."
)
EJECT = click.option(
    "--eject", is_flag=True, help="Keep the models running unmanaged: kubefoundry eject of each."
)
TIMEOUT = click.option(
    "--timeout",
    type=seconds,
    metavar="DURATION",
    default="10m",
    show_default=True,
    help="Wait for models to go, at most so long.",
)
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")


def in_its_namespace(target: Target) -> None:
    """Warn that -n is ignored if it names another namespace than the manifests."""
    if target.namespace not in (None, SYSTEM_NAMESPACE):
        say(f"-n {clean(target.namespace)} is ignored: KubeFoundry runs in namespace {SYSTEM_NAMESPACE}")


def one_of(eject: bool, delete_models: bool) -> None:
    """Raise Failure if both options are given."""
    if eject and delete_models:
        raise Failure("--eject keeps the models, --delete-models deletes them: choose one", Exit.USAGE)
