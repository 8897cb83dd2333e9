"""Builds a provider from its published flags, so that the command line renders as the provider's process does."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import replace

from kubefoundry_sdk._provider import pod_defaults, propagation
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.flags import COMMON, flag_of


def from_flags(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None,
    flags: Mapping[str, str],
) -> Provider:
    """Return the provider that its process builds if it is started with these flags (`started_with`).

    Raises:
        ValueError: The provider has no such flag, or does not take the value.
    """
    # import the runtime only here: a command without a cluster does not need it
    from kubefoundry_sdk._provider.run import parser
    from kubefoundry_sdk._runtime.options import without_variables

    with without_variables():
        flag_parser = parser(name)
        common = vars(flag_parser.parse_args([])).keys()
        if add_arguments:
            add_arguments(flag_parser)
    provider_flags = {
        flag_of(dest) for dest in (vars(flag_parser.parse_args([])).keys() - common) | {*COMMON}
    }
    if unknown := sorted(flags.keys() - provider_flags):
        raise ValueError(f"{name} has no flag {', '.join(unknown)} in this version")
    try:
        with redirect_stderr(io.StringIO()):
            parsed = flag_parser.parse_args([f"{flag}={text}" for flag, text in flags.items()])
    except SystemExit:
        raise ValueError(f"{name} does not take these flags in this version: {dict(flags)}") from None
    return replace(
        build(parsed),
        propagates=propagation.stated(parsed),
        pod_defaults=pod_defaults.stated(parsed),
        flags=dict(flags),
    )
