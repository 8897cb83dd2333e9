"""Define the entry point and the list of commands. A command is imported when it is called: `--help` is quick."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Final

import click
from click.exceptions import NoArgsIsHelpError

from kubefoundry_cli.output import printable
from kubefoundry_cli.suggestion import suggestion

COMMANDS: Final[dict[str, str]] = {
    "deploy": "Create a ModelDeployment for a model.",
    "status": "Show models: phase, provider, endpoint, and why a model is not ready.",
    "wait": "Wait until a model is ready, or deleted.",
    "chat": "Chat with a model.",
    "curl": "Send a request to a model's endpoint through the API server.",
    "logs": "Print the logs of a model's pods.",
    "scale": "Set the number of replicas.",
    "explain": "Show why a provider is selected, and what change would select another.",
    "plan": "Show what an edit would change upstream, and which field causes it.",
    "render": "Print the upstream objects of a ModelDeployment file, without a cluster.",
    "compat": "Show what an upgrade of an upstream system would do to the models on it.",
    "pause": "Stop reconciling a model; what runs keeps running.",
    "resume": "Reconcile a paused model again.",
    "reselect": "Select a model's provider again.",
    "refresh": "Render a model again with the current defaults.",
    "import": "Make a ModelDeployment for an upstream object that serves already.",
    "eject": "Remove a ModelDeployment; its upstream object stays and serves.",
    "controller": "Install, upgrade or remove core and selector.",
    "provider": "Install, list, remove or write providers.",
    "images": "List every image that a cluster can pull, for a registry of your own.",
    "start": "Serve a page with models and their reasons on this machine.",
    "doctor": "Check the installation: API, components, providers, models.",
    "completion": "Print the completion script for a shell.",
    "version": "Print the versions of this command and of the components in the cluster.",
}
"""Name and help of every command, in the order of the help text."""

TOGETHER: Final = dict.fromkeys(("scale", "pause", "resume", "reselect", "refresh"), "lifecycle")
"""Module by command. In a shared module, the function has the command's name.

In a module of its own, a command is the function `command`.
"""

RENAMED: Final = {"import": "adopt"}
"""Module by command, for a command whose name is a Python keyword."""


TRACEBACK: Final = "KUBEFOUNDRY_TRACEBACK"
"""Environment variable that shows the traceback of an internal error."""


INSTEAD: Final = {
    **dict.fromkeys(("get", "list", "ls", "ps"), "kubefoundry status"),
    **dict.fromkeys(("delete", "rm"), "kubectl delete md NAME"),
    "describe": "kubefoundry doctor NAME",
    "edit": "kubectl edit md NAME",
    "apply": "kubectl apply -f FILE",
    "run": "kubefoundry deploy MODEL",
    "install": "kubefoundry controller install",
    "uninstall": "kubefoundry controller uninstall",
    "help": "kubefoundry --help",
}
"""The command to suggest for a command name of another tool."""

GROUPS: Final = ("controller", "provider")
"""Commands that have commands of their own."""

WITHOUT_CLUSTER: Final = ("render", "images", "completion")
"""Commands that use no cluster, so they have none of the options of LEADING."""

LEADING: Final = ("--kubeconfig", "--context", "--namespace", "-n", "--as", "--as-group")
"""Options with a value that are accepted before the command, too, as kubectl accepts them."""


class Commands(click.Group):
    """A group that imports a command of COMMANDS only when it is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the leading options behind the command."""
        ordered = reordered(args)
        if ordered != args and ordered[0] in ctx.help_option_names:
            ordered = ordered[:1]
        if ordered != args and ordered[0] in WITHOUT_CLUSTER:
            ctx.fail(f"{ordered[0]} uses no cluster: leave out {args[0]}")
        if ordered and ordered[0].partition("=")[0] in LEADING:
            ctx.fail("a command is missing behind the options")
        return super().parse_args(ctx, ordered)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        name = TOGETHER.get(cmd_name) or RENAMED.get(cmd_name, cmd_name)
        module = import_module(f"kubefoundry_cli.commands.{name}")
        command: click.Command = getattr(module, cmd_name if cmd_name in TOGETHER else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for an unknown name."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            instead = f"; write {INSTEAD[args[0]]}" if args[0] in INSTEAD else suggestion(args[0], COMMANDS)
            ctx.fail(f"No such command '{args[0]}'{instead}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without an import of each."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def reordered(args: list[str]) -> list[str]:
    """Return the arguments with the leading options of LEADING moved behind the command."""
    first = 0
    while first < len(args):
        name, is_stated, _ = args[first].partition("=")
        if name in LEADING:
            first += 1 if is_stated else 2
        elif name.startswith("-n"):
            # with its value in the same word
            first += 1
        else:
            break
    end = first + (2 if args[first : first + 1] and args[first] in GROUPS else 1)
    return [*args[first:end], *args[:first], *args[end:]]


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success or yes, 1 failure or no, 2 invalid usage, 3 changed since it was read, "
    "4 no cluster or not installed, 5 forbidden, 6 timed out.",
)
def kubefoundry() -> None:
    """Deploy language models on Kubernetes, and see why they are or are not ready.

    Options that name the cluster, the namespace or the user may precede the command: kubefoundry -n models status.
    """


def main() -> None:
    """Run the console script."""
    _usable_streams()
    try:
        try:
            code = kubefoundry.main(prog_name=_called(), standalone_mode=False)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except click.Abort:
        # Ctrl-C that the command has not handled itself.
        sys.exit(130)
    except BrokenPipeError:
        # The reader has closed the pipe. That is not an internal error, and nobody reads a message.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        # For example, the disk is full. The rest of the buffer cannot be written either, so it is discarded.
        sys.stderr.write(f"error: {error}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        sys.stderr.write(f"error: internal error: {what}; report it, with what {TRACEBACK}=1 shows\n")
        sys.exit(1)


def _show(error: click.ClickException) -> None:
    """Print a usage error in one line that names the help, and other errors as they print themselves."""
    if isinstance(error, NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
    elif isinstance(error, click.UsageError):
        where = f" ({error.ctx.command_path} --help)" if error.ctx else ""
        sys.stderr.write(f"error: {printable(error.format_message().rstrip('.'))}{where}\n")
    else:
        error.show()


def _usable_streams() -> None:
    """Replace a closed standard input by an empty one, and escape characters that the terminal's encoding lacks."""
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _called() -> str:
    """Return the program's name for messages: `kubefoundry`, or `kubectl NAME` for a kubectl plugin."""
    name = sys.argv[0].rsplit("/", 1)[-1]
    return name.replace("-", " ", 1) if name.startswith("kubectl-") else "kubefoundry"
