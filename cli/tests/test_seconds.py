"""Durations on the command line: as kubectl writes them, or a number of seconds."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from kubefoundry_cli.main import kubefoundry
from kubefoundry_cli.seconds import seconds


def test_other_text_is_a_bad_parameter() -> None:
    with pytest.raises(click.BadParameter, match="is not a duration: write 90s, 20m or 1h30m"):
        seconds("20 m")


def options(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Yield the options of all commands, each with its command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from options(command, f"{name} ")
        else:
            yield from ((f"{path}{name} {option.opts[-1]}", option) for option in command.params)


def test_every_duration_option_reads_durations() -> None:
    durations = {
        name: option.type.convert("1h30m", None, None)
        for name, option in options(kubefoundry)
        if name.endswith((" --timeout", " --wait")) and not getattr(option, "is_flag", False)
    }

    assert durations == dict.fromkeys(
        (
            "eject --timeout",
            "wait --timeout",
            *(
                f"{group} {name} --wait"
                for group in ("controller", "provider")
                for name in ("install", "upgrade")
            ),
            *(f"{group} uninstall --timeout" for group in ("controller", "provider")),
        ),
        5400.0,
    )


def test_no_option_takes_a_number_of_seconds_only() -> None:
    numbers = [
        name for name, option in options(kubefoundry) if isinstance(option.type, click.types.FloatParamType)
    ]

    assert numbers == []
