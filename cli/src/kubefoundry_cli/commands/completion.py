"""`kubefoundry completion`: the script that a shell reads."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    kubefoundry completion bash > ~/.local/share/bash-completion/completions/kubefoundry
    """  # noqa: D301
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = ctx.find_root()
    print(completion_class(root.command, {}, "kubefoundry", "_KUBEFOUNDRY_COMPLETE").source())
