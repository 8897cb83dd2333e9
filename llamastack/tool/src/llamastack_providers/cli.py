"""Commands, exit codes, and the final message. Exit codes: 0 success, 1 something is wrong, 2 a wrong call."""

from __future__ import annotations

import argparse
import errno
import io
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from llamastack_providers import request, scaffold, summary
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import TERMINATION_LOG, Layout
from llamastack_providers.summary import Origin

# Each command imports what it needs: Python compiles a module of a zipapp again at every start, which took most of
# the time of `extract-config`.

_SUMMARIES: Final = {
    "install": "install the provider of this image for the pod",
    "extract-config": "copy the distribution's run configuration",
    "merge-config": "merge the providers into the run configuration",
    "preflight": "check that the server can load every external provider",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    The message for the pod's status goes to /dev/termination-log and to standard error.
    """
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # as standard error does by default: text from an image may contain anything
        sys.stdout.reconfigure(errors="backslashreplace")
    if options.command == "lint":
        from llamastack_providers import lint

        return lint.main(options.folder, options.entry)
    if options.command == "init":
        return scaffold.main(options.folder, options.api, options.name, service=options.service)
    return _in_pod(options.command, options.input, Layout(options.root))


def _in_pod(command: str, chunks: Sequence[str], places: Layout) -> int:
    log = places.at(TERMINATION_LOG)
    about = Origin()
    try:
        value = request.decode(chunks)
        about = request.origin(value, init=command != "preflight")
        message = _COMMANDS[command](value, places)
    except Failure as failure:
        return _end(failure, about, log)
    except MemoryError:
        return _end(Failure(Code.NoMemory, f"{command} needs more memory than it may have"), about, log)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"{error.filename or command}: {error.strerror}"
            return _end(Failure(Code.NoSpace, reason, detail=traceback.format_exc()), about, log)
        reason = f"{error.filename or command}: {error.strerror or error}"
        return _end(Failure(Code.WriteFailed, reason, detail=traceback.format_exc()), about, log)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return _end(Failure(Code.Internal, reason, detail=traceback.format_exc()), about, log)
    if message:
        summary.write(message, log)
    return 0


def _end(failure: Failure, about: Origin, log: Path) -> int:
    text = summary.failure_text(failure, about)
    print(text, file=sys.stderr, flush=True)
    summary.write(text, log)
    return failure.code.value.exit_code


def _install(value: request.Json, places: Layout) -> str:
    from llamastack_providers import install

    facts, warnings = install.run(request.provider(value), places)
    print(f"Installed {facts['package']} {facts['version']}")
    return _output(facts, warnings)


def _extract(_: request.Json, places: Layout) -> str:
    from llamastack_providers import extract

    print(f"Found {extract.run(places)}")
    return ""


def _merge(value: request.Json, places: Layout) -> str:
    from llamastack_providers import merge_config

    return _output({}, merge_config.run(request.merge(value), places))


def _preflight(value: request.Json, places: Layout) -> str:
    from llamastack_providers import preflight

    started = time.monotonic()
    about, log = request.origin(value, init=False), places.at(TERMINATION_LOG)
    # if the process is killed, there is no time left to say what it was doing
    passed = preflight.run(
        places,
        request.preflight(value),
        lambda failure: summary.write(summary.failure_text(failure, about), log),
    )
    summary.write("", log)
    _output({}, passed.warnings)
    seconds = time.monotonic() - started
    print(
        f"Preflight passed; external providers: {passed.providers}; "
        f"{seconds:.1f} s, {passed.loading:.1f} s of it to load them",
        flush=True,
    )
    # the server follows in this container: its own leftovers are not ours to kill
    return ""


def _output(facts: dict[str, str], warnings: list[str]) -> str:
    for warning in warnings:
        print(f"WARNING: {warning}", flush=True)
    return summary.success_text(facts, warnings)


_COMMANDS: Final[dict[str, Callable[[request.Json, Layout], str]]] = {
    "install": _install,
    "extract-config": _extract,
    "merge-config": _merge,
    "preflight": _preflight,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llamastack-providers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, purpose in _SUMMARIES.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        command.add_argument(
            "--input", nargs="+", required=True, metavar="BASE64", help="JSON; several are joined"
        )
        command.add_argument(
            "--root", type=Path, default=Path("/"), help="where all paths begin (outside of a pod)"
        )
    command = commands.add_parser("lint", help="check a folder that is to become /lls-provider of an image")
    command.add_argument("folder", type=Path)
    command.add_argument(
        "--entry", type=Path, metavar="FILE", help="the provider's entry in spec.server.externalProviders"
    )
    command = commands.add_parser("init", help="write the sources of a new provider")
    command.add_argument("folder", type=Path)
    command.add_argument("--api", choices=scaffold.APIS, default=scaffold.APIS[0])
    command.add_argument(
        "--service", action="store_true", help="write a provider that calls a service, and the service"
    )
    command.add_argument("--name", required=True, help="name of the package, such as acme-echo")
    return parser
