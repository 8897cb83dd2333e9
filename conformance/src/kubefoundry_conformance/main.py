"""`kubefoundry-conformance`: exit code 0 where every check passed, 1 where one failed, 2 where it cannot run."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from kubefoundry_conformance import cases, report
from kubefoundry_conformance.cases import Unusable
from kubefoundry_conformance.check import Result, run
from kubefoundry_conformance.functions.checks import FUNCTIONS
from kubefoundry_conformance.functions.subject import EXAMPLES, Functions, Start, loaded


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = _parser().parse_args(arguments)
    if arguments is None:
        _interruptible()
    try:
        _writable(options.json, options.junit, options.log)
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
    if report.conformant(results):
        return 0
    if options.manifest and not options.log:
        print("to read what the process logged, run it again with --log FILE", file=sys.stderr)
    return 1


def _interruptible() -> None:
    """What was made is removed, also where a shell has started us in the background, or a CI system ends us."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def _writable(*files: Path | None) -> None:
    """Raises Unusable for one that cannot be written, before minutes of checks."""
    for file in filter(None, files):
        try:
            file.open("ab").close()
        except OSError as error:
            raise Unusable(f"cannot write {file}: {error.strerror}") from error


def provider(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Checks a provider. Raises Unusable."""
    if not (options.functions or options.manifest):
        raise Unusable("say what to check: --functions MODULE:FUNCTION, --manifest FILE, or both")
    if options.kubeconfig and not options.manifest:
        raise Unusable("--kubeconfig is for the checks of the process: give --manifest FILE, too")
    name, results = "", list[Result]()
    if options.functions:
        name, results = functions(options)
    if options.manifest:
        name, found = process(options)
        results += found
    return name, results


def process(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Checks a provider's process, on a control plane of its own or in a running cluster. Raises Unusable."""
    # Here: what reads a kubeconfig takes half a second to import.
    from kubefoundry_conformance.cluster import processes

    if options.crd is None and not options.functions:
        raise Unusable("give the upstream CRD: --crd FILE (with --functions a kind of Kubernetes needs none)")
    upstream = loaded(options.functions).upstream if options.functions else None
    return processes.check_process(
        cases.documents_of(options.manifest),
        cases.documents_of(options.crd) if options.crd else [],
        upstream,
        cases.read(options.cases),
        shlex.split(options.command),
        options.kubeconfig,
        options.log,
    )


def selector(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Checks a selector's process on a control plane of its own. Raises Unusable."""
    from kubefoundry_conformance.cluster import processes

    providers = options.providers.split(",")
    if len(set(providers)) < 2:
        raise Unusable("name two providers that the selector may choose: --providers A,B")
    return processes.check_selector(
        cases.documents_of(options.manifest), shlex.split(options.command), providers, options.log
    )


def functions(options: argparse.Namespace) -> tuple[str, list[Result]]:
    """Checks a provider's functions. Raises Unusable."""
    start = Start.here(options.functions)
    made = loaded(options.functions)
    crd = None
    if made.upstream.schema is None:
        if options.crd is None:
            raise Unusable(f"give the upstream CRD {made.upstream.crd}: --crd FILE")
        crd = cases.crd_in(options.crd, made.upstream.crd)
    given = Functions(made, crd, cases.read(options.cases), options.examples, start)
    return made.name, check_functions(given)


def check_functions(subject: Functions) -> list[Result]:
    """All checks of functions. Raises Unusable where `probe` does not support the CRD."""
    _ = subject.schema
    return [run(check, subject, "functions") for check in FUNCTIONS]


def _examples(text: str) -> int:
    if not (text.isdecimal() and int(text) >= 3):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 3 on")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubefoundry-conformance", description=__doc__)
    subjects = parser.add_subparsers(required=True, metavar="SUBJECT")
    of_provider = subjects.add_parser("provider", help="check a provider")
    of_provider.set_defaults(check=provider)
    of_provider.add_argument(
        "--functions",
        metavar="MODULE:FUNCTION",
        help="checks the four functions: what returns the Provider when called without arguments, or the name of an "
        "installed one",
    )
    of_provider.add_argument(
        "--manifest",
        type=Path,
        help="checks the process: the manifest that installs it. Starts a control plane and core, which needs a "
        "checkout, unless there is --kubeconfig",
    )
    of_provider.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="checks the process in the running cluster of this kubeconfig's current context, with core installed; "
        "what is made there is removed at the end",
    )
    of_provider.add_argument(
        "--command", default="", help="starts the process, in place of the manifest's command"
    )
    of_provider.add_argument("--crd", type=Path, help="file with the upstream CRD")
    of_provider.add_argument("--cases", type=Path, required=True, help="file with specs and statuses")
    of_provider.add_argument(
        "--examples", type=_examples, default=EXAMPLES, help="generated values for each check, 3 at least"
    )
    of_selector = subjects.add_parser("selector", help="check a selector")
    of_selector.set_defaults(check=selector)
    of_selector.add_argument(
        "--manifest", type=Path, required=True, help="the manifest that installs it; needs a checkout"
    )
    of_selector.add_argument(
        "--command", default="", help="starts the process, in place of the manifest's command"
    )
    of_selector.add_argument(
        "--providers",
        default="alpha,beta",
        help="names of two providers that it may choose, for vLLM on a GPU",
    )
    for subject in (of_provider, of_selector):
        subject.add_argument("--output", choices=("table", "json", "junit"), default="table")
        subject.add_argument("--json", type=Path, metavar="FILE", help="writes the report as JSON, too")
        subject.add_argument("--junit", type=Path, metavar="FILE", help="writes the report as JUnit XML, too")
        subject.add_argument("--log", type=Path, metavar="FILE", help="keeps what the process has logged")
        subject.add_argument("--badge", action="store_true", help="prints a line of Markdown for a README")
    return parser


if __name__ == "__main__":
    sys.exit(main())
