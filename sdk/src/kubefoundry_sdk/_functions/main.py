"""`kubefoundry-provider-functions`: a provider whose functions are a program in any language, or a mapping."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_sdk._functions.client import Client, Deadlines
from kubefoundry_sdk._functions.messages import Settings
from kubefoundry_sdk._functions.provider import provider
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.flags import started_with
from kubefoundry_sdk._provider.installation import manifest
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._provider.run import parser, prepared
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process, run

PROGRAM: Final = "kubefoundry-provider-functions"
MOUNTED: Final = "/mapping"
"""Folder in the container with the file of a mapping."""

MAPPING: Final = "mapping.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the provider, or print the manifest that installs it; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = _name(given)
    clients: list[Client] = []

    def build(parsed: argparse.Namespace) -> Provider:
        if parsed.mapping:
            return _mapped(parsed, name)
        client = Client(
            command(parsed.command),
            Settings(default_images=parsed.default_images, values=parsed.set),
            Deadlines(parsed.call_timeout, parsed.start_timeout),
        )
        clients.append(client)
        return described(client, name)

    def build_or_print(parsed: argparse.Namespace) -> Provider:
        built = build(parsed)
        if parsed.print_manifest:
            # As JSON, no part occurs twice: YAML would write an alias for it.
            documents = json.loads(
                json.dumps(installed(built, parsed.print_manifest, _stated(parsed), parsed.mapping))
            )
            print(yaml.safe_dump_all(documents, sort_keys=False), end="")
            raise SystemExit(0)
        return built

    def close() -> None:
        for client in clients:
            client.close()

    try:
        parsed, set_up = prepared(name, build_or_print, _add_flags, given)

        def connect(running: Process) -> None:
            set_up(running)
            # The process waits for threads, so calls in progress have to end with it.
            running.background("end of the program", partial(_wait_for_end, close))

        return run(f"kubefoundry-provider-{name}", parsed, connect)
    finally:
        close()


async def _wait_for_end(close: Callable[[], None]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        close()


def command(text: str) -> list[str]:
    """Return the words of a command. Raise ValueError if it is empty, or has an open quotation."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"the command {text!r} cannot be read: {error}") from error
    if not words:
        raise ValueError("there is no program: give --command or --mapping")
    return words


def described(client: Client, name: str | None) -> Provider:
    """Return the provider that a program describes.

    Raise ValueError if it describes none, or one of another name than `name`.
    """
    try:
        built = provider(client)
    except Fault as error:
        raise ValueError(f"no provider: {error}") from error
    if name is not None:
        _check_name(built, name, "program")
    return built


def _check_name(built: Provider, name: str, source: str) -> None:
    if built.name != name:
        raise ValueError(
            f"the {source} describes provider {built.name}, not {name}: give --name {built.name}"
        )


def mapped(path: Path, images: Mapping[str, str]) -> Provider:
    """Return the provider of a mapping's file.

    Raise ValueError if the file is unreadable or invalid, or if the extra `cel` is not installed.
    """
    try:
        # A program in another language needs no CEL.
        from kubefoundry_sdk._functions.mapping.provider import load
    except ImportError as error:
        raise ValueError(f"a mapping needs CEL ({error}): pip install 'kubefoundry-sdk[cel]'") from error
    return load(path, images)


def _mapped(parsed: argparse.Namespace, name: str) -> Provider:
    if parsed.command or parsed.set:
        raise ValueError("--command and --set are for a program: remove them, or --mapping")
    built = mapped(Path(parsed.mapping), parsed.default_images)
    _check_name(built, name, "mapping")
    return built


def installed(built: Provider, image: str, flags: Sequence[str], mapping: str = "") -> list[dict[str, Any]]:
    """Return the manifest that installs the provider, with this process and its flags in the Deployment.

    The file of a mapping is in a ConfigMap, so the image needs nothing but the SDK with its extra `cel`.
    """
    documents = manifest(built, image)
    [deployment] = [document for document in documents if document["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    container["command"] = [PROGRAM]
    container["args"] = [f"--name={built.name}", *flags, *container["args"]]
    if mapping:
        text = Path(mapping).read_text(encoding="utf-8")
        # Not a flag among others, so that `--command` of the conformance kit replaces it.
        container["command"].append(f"--mapping={MOUNTED}/{MAPPING}")
        container["volumeMounts"] = [{"name": "mapping", "mountPath": MOUNTED, "readOnly": True}]
        pod["spec"]["volumes"] = [{"name": "mapping", "configMap": {"name": deployment["metadata"]["name"]}}]
        # A changed file restarts the process.
        pod["metadata"]["annotations"] = {
            "kubefoundry.ai/mapping-digest": hashlib.sha256(text.encode()).hexdigest()[:16]
        }
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dict(deployment["metadata"])}
        documents.insert(documents.index(deployment), {**config, "data": {MAPPING: text}})
    return documents


def _stated(parsed: argparse.Namespace) -> list[str]:
    """Return the flags, without `--name`, whose values are not the defaults and that shape what the program does."""
    with options.without_variables():
        common = parser(PROGRAM)
        own = parser(PROGRAM)
        _add_flags(own)
        shared = common.parse_args([])
        defaults = started_with(own.parse_args([]), shared)
    return [
        f"{flag}={text}"
        for flag, text in started_with(parsed, shared).items()
        if flag not in ("--name", "--mapping", "--print-manifest") and defaults.get(flag) != text
    ]


def _name(given: Sequence[str]) -> str:
    """Return the value of `--name`, on which the other flags' names depend."""
    first = argparse.ArgumentParser(prog=PROGRAM, add_help=False, allow_abbrev=False)
    _add_name(first)
    return str(first.parse_known_args(given)[0].name or "functions")


def _add_name(parser: argparse.ArgumentParser) -> None:
    options.flag(parser, "--name", "name of the provider, which the program has to describe", default="")


def _add_flags(parser: argparse.ArgumentParser) -> None:
    # Providers have programs of their own names; this one serves many.
    parser.prog = PROGRAM
    _add_name(parser)
    options.flag(
        parser,
        "--command",
        "program with the functions, and its arguments, as a shell quotes them",
        default="",
    )
    options.flag(
        parser,
        "--mapping",
        "file with a mapping, in place of a program (docs/mapping.md)",
        default="",
    )
    options.flag(
        parser,
        "--set",
        "NAME=VALUE for the program's own settings; separate several with commas",
        default="",
        read=_settings,
    )
    options.flag(
        parser,
        "--call-timeout",
        "time for each response of the program: 5s or a number of seconds",
        default="5s",
        read=options.duration,
    )
    options.flag(
        parser,
        "--start-timeout",
        "time for the program's first response: 30s or a number of seconds",
        default="30s",
        read=options.duration,
    )
    options.flag(
        parser,
        "--print-manifest",
        "image with this program, and with the functions if they are not a mapping: print the manifest that installs "
        "the provider, and exit",
        default="",
    )


def _settings(text: str) -> dict[str, str]:
    settings = {}
    for pair in filter(None, text.split(",")):
        name, separator, value = pair.partition("=")
        if not (name and separator):
            raise argparse.ArgumentTypeError(f"{pair!r} is not NAME=VALUE")
        settings[name] = value
    return settings


if __name__ == "__main__":
    sys.exit(main())
