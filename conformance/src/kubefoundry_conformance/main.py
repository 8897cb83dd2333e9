"""`kubefoundry-conformance`: exit code 0 if every check passed, 1 if one failed, 2 if it cannot run."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from kubefoundry_conformance import cases, report, versions
from kubefoundry_conformance.cases import Unusable
from kubefoundry_conformance.check import Result, run
from kubefoundry_conformance.functions.checks import FUNCTIONS
from kubefoundry_conformance.functions.subject import (
    EXAMPLES,
    LOADERS,
    Functions,
    Start,
)
from kubefoundry_sdk._provider.contract import Provider


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, print the report, and return the exit code."""
    options = _parser().parse_args(arguments)
    if arguments is None:
        _handle_signals()
    try:
        _check_writable(options.json, options.junit, options.log)
        subject, results = options.check(options)
    except Unusable as error:
        print(f"kubefoundry-conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("kubefoundry-conformance: interrupted, nothing is reported", file=sys.stderr)
        return 130
    print(report.document(options.output, subject, results))
    if options.junit:
        options.junit.write_text(report.as_junit(subject, results), encoding="utf-8")
    if options.json:
        options.json.write_text(report.as_json(subject, results), encoding="utf-8")
    if options.badge:
        print(report.badge(results))
    if report.is_conformant(results):
        return 0
    if options.manifest and not options.log:
        print("to read what the process logged, run it again with --log FILE", file=sys.stderr)
    return 1


def _handle_signals() -> None:
    """Turn signals into KeyboardInterrupt, so that created objects are removed."""
    # A shell starts background processes with SIGINT ignored. CI systems send SIGTERM.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def _check_writable(*files: Path | None) -> None:
    """Raise Unusable if a file cannot be written, before minutes of checks."""
    for file in filter(None, files):
        try:
            file.open("ab").close()
        except OSError as error:
            raise Unusable(f"cannot write {file}: {error.strerror}") from error


def check_provider(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Check a provider's functions, its process, or both.

    Returns:
        The provider's name, and the results.

    Raises:
        Unusable: The options or a file cannot be used.
    """
    ways = [way for way in LOADERS if getattr(options, way)]
    if not (ways or options.manifest):
        raise Unusable("say what to check: --functions MODULE:FUNCTION, --manifest FILE, or both")
    if len(ways) > 1:
        raise Unusable("give one of --functions, --functions-command and --mapping")
    if options.kubeconfig and not options.manifest:
        raise Unusable("--kubeconfig is for the checks of the process: give --manifest FILE, too")
    name, results, provider = "", list[Result](), None
    for way in ways:
        where = getattr(options, way)
        # Recorded before the provider is loaded, which may change it.
        start = Start.here(where, way)
        provider = LOADERS[way](where)
        name, results = _check_functions_of(options, provider, start)
    if options.manifest:
        name, process_results = _check_process_of(options, provider)
        results += process_results
    return name, results


def _check_process_of(options: argparse.Namespace, provider: Provider | None) -> tuple[str, list[Result]]:
    """Check a process on a local control plane or in a running cluster.

    Raises:
        Unusable: The options or a file cannot be used.
    """
    # Imported here, because the reader of kubeconfigs takes half a second to import.
    from kubefoundry_conformance.cluster import processes, waiting

    waiting.set_patience(options.patience)
    if options.crd is None and provider is None:
        raise Unusable("give the upstream CRD: --crd FILE (with --functions a kind of Kubernetes needs none)")
    upstream = provider.upstream if provider else None
    return processes.check_process(
        cases.documents_of(options.manifest),
        cases.documents_of(options.crd) if options.crd else [],
        upstream,
        cases.read(options.cases),
        shlex.split(options.command),
        options.kubeconfig,
        options.log,
    )


def check_selector(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Check a selector's process on a local control plane.

    Returns:
        The selector's ServiceAccount, and the results.

    Raises:
        Unusable: The options or a file cannot be used.
    """
    from kubefoundry_conformance.cluster import processes, waiting

    waiting.set_patience(options.patience)
    providers = options.providers.split(",")
    if len(set(providers)) < 2:
        raise Unusable("name two providers that the selector may choose: --providers A,B")
    return processes.check_selector(
        cases.documents_of(options.manifest), shlex.split(options.command), providers, options.log
    )


def _check_functions_of(
    options: argparse.Namespace, provider: Provider, start: Start
) -> tuple[str, list[Result]]:
    """Check the functions of a provider.

    Raises:
        Unusable: The options or a file cannot be used.
    """
    crd = None
    if provider.upstream.schema is None:
        if options.crd is None:
            raise Unusable(f"give the upstream CRD {provider.upstream.crd}: --crd FILE")
        crd = cases.crd_in(options.crd, provider.upstream.crd)
    subject = Functions(provider, crd, cases.read(options.cases), options.examples, start)
    return provider.name, check_functions(subject)


def check_functions(subject: Functions) -> list[Result]:
    """Run all checks of functions.

    Raises:
        Unusable: `probe` does not support the CRD.
    """
    _ = subject.schema  # raises before the first check
    return [run(check, subject, "functions") for check in FUNCTIONS]


def _examples(text: str) -> int:
    if not (text.isdecimal() and int(text) >= 3):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 3 on")
    return int(text)


def _patience(text: str) -> float:
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return float(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubefoundry-conformance", description=__doc__)
    parser.add_argument("--version", action="version", version=versions.text())
    subjects = parser.add_subparsers(required=True, metavar="SUBJECT")
    of_provider = subjects.add_parser("provider", help="check a provider")
    of_selector = subjects.add_parser("selector", help="check a selector")
    _add_provider_options(of_provider)
    _add_selector_options(of_selector)
    for subject in (of_provider, of_selector):
        subject.add_argument("--output", choices=("table", "json", "junit"), default="table")
        subject.add_argument("--json", type=Path, metavar="FILE", help="writes the report as JSON, too")
        subject.add_argument("--junit", type=Path, metavar="FILE", help="writes the report as JUnit XML, too")
        subject.add_argument("--log", type=Path, metavar="FILE", help="keeps what the process has logged")
        subject.add_argument(
            "--patience",
            type=_patience,
            default=1.0,
            metavar="FACTOR",
            help="multiplies the 20 seconds that a check of a process waits for a state: for a slow cluster",
        )
        subject.add_argument("--badge", action="store_true", help="prints a line of Markdown for a README")
    return parser


def _add_provider_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(check=check_provider)
    parser.add_argument(
        "--functions",
        metavar="MODULE:FUNCTION",
        help="checks the four functions: what returns the Provider when called without arguments, or the name of an "
        "installed one",
    )
    parser.add_argument(
        "--functions-command",
        metavar="COMMAND",
        help="checks the functions of a program in any language, which this starts (docs/functions.md)",
    )
    parser.add_argument(
        "--mapping", metavar="FILE", help="checks the functions of a mapping (docs/mapping.md)"
    )
    parser.add_argument(
        "--manifest",
        type=Path,
        help="checks the process: the manifest that installs it. Starts a control plane and core, which needs a "
        "checkout, unless there is --kubeconfig",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="checks the process in the running cluster of this kubeconfig's current context, with core installed; "
        "what is made there is removed at the end",
    )
    parser.add_argument(
        "--command", default="", help="starts the process, in place of the manifest's command"
    )
    parser.add_argument("--crd", type=Path, help="file with the upstream CRD")
    parser.add_argument("--cases", type=Path, required=True, help="file with specs and statuses")
    parser.add_argument(
        "--examples", type=_examples, default=EXAMPLES, help="generated values for each check, 3 at least"
    )


def _add_selector_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(check=check_selector)
    parser.add_argument(
        "--manifest", type=Path, required=True, help="the manifest that installs it; needs a checkout"
    )
    parser.add_argument(
        "--command", default="", help="starts the process, in place of the manifest's command"
    )
    parser.add_argument(
        "--providers",
        default="alpha,beta",
        help="names of two providers that it may choose, for vLLM on a GPU",
    )
