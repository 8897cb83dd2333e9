"""`make demo`: the whole suite on this machine, from nothing to four ModelDeployments that run, and one that answers.

It runs until Ctrl-C; with `CI=true` it deletes everything, shows that nothing is left, and exits. If no pods can run,
it leaves out the model that answers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

from kubefoundry_demo import answer, examples, namespaces
from kubefoundry_local.control_plane import CannotRun, ControlPlane, build, own_control_plane
from kubefoundry_local.suite import COMPONENTS, Suite
from kubefoundry_local.upstream_crds import RELEASES, upstream_crds
from kubefoundry_nodes.images import environment
from kubefoundry_nodes.llama import image

SPEED: Final = "1"
"""Recorded seconds of the upstream operators that pass in one second: the recordings took them ten seconds at
most."""

SHOWN: Final = "llama-8b"
"""The example whose upstream object is printed; it names no provider."""

INTRODUCTION: Final = """\
KubeFoundry on this machine: a real Kubernetes API server, our six processes
with their own permissions, and SIMULATED upstream operators: they report what
the real ones were seen to report, but no pod of theirs runs.
"""

DESCRIPTION: Final = """\
A real Kubernetes API server and all of KubeFoundry on this machine, until Ctrl-C; with CI=true it ends by itself and
leaves nothing. As root it also runs a model that answers."""

LEFT_OUT: Final = "Left out: the model that answers, because {reason}.\n"

NEXT: Final = """
All of it stays up until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
{alias}  kubectl get md -A
  kubectl describe md llama-8b -n {namespace}
  kubectl scale md qwen-ray -n {namespace} --replicas=3
  kubectl get ipc
  kubectl explain md.spec.scaling
  kubectl delete md gemma-cpu -n {namespace}
{answering}
md: ModelDeployments, ipc: the providers (InferenceProviderConfigs).
Logs of the processes: {logs}{pod_logs}
"""


ANSWERING: Final = f"""
  alias kubefoundry={Path(sys.executable).with_name("kubefoundry")}
  kubefoundry chat {answer.NAME} "What is a pod?" -n {examples.NAMESPACE}
  kubefoundry logs {answer.NAME} -n {examples.NAMESPACE}
  kubectl scale md {answer.NAME} -n {examples.NAMESPACE} --replicas=3
  kubectl proxy --port=8001 &
  curl localhost:8001/api/v1/namespaces/{examples.NAMESPACE}/services/{answer.SERVICE}:8000/proxy/v1/models

Only {answer.NAME} answers and has logs: the systems of the others are simulated, and no other model is on this
machine.
"""

AT_WORK: Final = 15.0
"""Seconds between two progress lines of a slow step."""


def main() -> None:
    """Start the demo, or continue it in its namespaces if there are arguments.

    Raises:
        KeyboardInterrupt: The user ended it.
        SystemExit: A prerequisite is missing or fails. The message has one line.
    """
    try:
        if len(sys.argv) == 3:
            run(float(sys.argv[1]), int(sys.argv[2]))
        else:
            argparse.ArgumentParser(prog="kubefoundry-demo", description=DESCRIPTION).parse_args()
            begin()
    except (CannotRun, OSError, RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"kubefoundry-demo: {error}")


def begin() -> None:
    """Prepare images and continue in the demo's own namespaces, if pods can run. Otherwise run without them."""
    started = time.monotonic()
    print(INTRODUCTION, flush=True)
    if reason := _missing(_clock(started)):
        print(LEFT_OUT.format(reason=reason), flush=True)
        run(started)
    else:
        namespaces.enter("kubefoundry_demo", str(started))


def _missing(say: answer.Say) -> str:
    """Prepare the image of pods. Return why no pods can run and what to do, empty if they can."""
    if reason := namespaces.missing():
        return f"{reason}: run `make demo` as root on Linux"
    build()
    try:
        with _at_work(
            say,
            "a small Debian system and llama.cpp's server: 2 minutes the first time",
        ):
            environment.layer(image.LOCK, image.HOME)
    except (RuntimeError, subprocess.CalledProcessError):
        return "its packages could not be installed, see above: try again with a network"
    return ""


def run(started: float, descriptor: int | None = None) -> None:
    """Run the demo.

    Args:
        started: The time.monotonic() of its start.
        descriptor: The socket that this machine can reach, None if no pods can run.

    Raises:
        CannotRun: A step failed.
        KeyboardInterrupt: The user ended it.
    """
    folder = Path(tempfile.mkdtemp(prefix="kubefoundry-demo-"))
    try:
        demonstrate(folder, started, descriptor, stays=os.environ.get("CI") != "true")
    except CannotRun as problem:
        raise CannotRun(f"{problem} (all logs: {folder})") from None
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


def demonstrate(folder: Path, started: float, descriptor: int | None, *, stays: bool) -> None:
    """Run all steps, and wait for Ctrl-C before the end if `stays`. Raises CannotRun, KeyboardInterrupt."""
    say = _clock(started)
    crds = upstream_crds()
    flags = [flag for crd in crds for flag in ("--crds", str(crd.file))]
    if descriptor is not None:
        # Deployments of provider direct get pods.
        flags.append("--all-controllers")
    say("starting the control plane")
    with own_control_plane(folder / "plane", flags) as plane, ExitStack() as stack:
        say(f"upstream CRDs: {', '.join(crd.label for crd in crds)}")
        suite = Suite(plane, folder / "logs")
        stack.callback(suite.stop)
        try:
            suite.install_ground()
            suite.simulate(*RELEASES, flags=["--speed", SPEED])
            if descriptor is not None:
                suite.install("direct", environment=answer.ENGINE)
            suite.start()
            say(f"processes: {', '.join(COMPONENTS)}")
            _show_examples(plane, started)
            kubeconfig = None
            if descriptor is not None:
                kubeconfig = stack.enter_context(namespaces.reachable(plane, descriptor, folder))
                stack.enter_context(answer.ground(plane, folder / "node"))
                answer.show(plane, say)
            if stays:
                stay(plane, suite.folder, kubeconfig)
            else:
                _clear(plane)
        finally:
            # A second Ctrl-C must not interrupt the shutdown.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("ended")


def _clock(started: float) -> answer.Say:
    """Return a function that prints lines with the seconds since `started`."""
    return lambda text: print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)


@contextmanager
def _at_work(say: answer.Say, text: str) -> Iterator[None]:
    """Print a step, and every few seconds that it is still running."""
    done = threading.Event()

    def report() -> None:
        while not done.wait(AT_WORK):
            say("  still working")

    say(text)
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show_examples(plane: ControlPlane, started: float) -> None:
    print(f"\n$ kubectl apply -n {examples.NAMESPACE} -f examples/\n", flush=True)
    asyncio.run(examples.run(plane, Console(), started))
    deployments = {name: examples.deployment(plane, name) for name in examples.names()}
    print("\nWhy each provider was chosen (status.provider.selectedReason):")
    for name, deployment in deployments.items():
        print(f"  {name:<14} {deployment['status']['provider']['selectedReason']}")
    shown = deployments[SHOWN]
    provider = shown["status"]["provider"]
    print(f"\n{SHOWN} became this {provider['resourceKind']},\nbecause: {provider['selectedReason']}\n")
    print(yaml.safe_dump(examples.rendered(plane, shown), sort_keys=False, width=110))
    print("Two that are refused:")
    for file in examples.bad():
        print(f"\n$ kubectl apply -n {examples.NAMESPACE} -f examples/bad/{file.name}")
        print(examples.refusal(plane, file), flush=True)


def stay(plane: ControlPlane, logs: Path, kubeconfig: Path | None = None) -> None:
    """Print commands to try, and wait for Ctrl-C.

    Args:
        plane: The control plane.
        logs: The folder of logs.
        kubeconfig: A kubeconfig that works on this machine, None if no model answers.

    Raises:
        CannotRun: The control plane ended by itself.
    """
    assert plane.process is not None
    own = "" if shutil.which("kubectl") else f"  alias kubectl={shlex.quote(f'{plane.binary} kubectl')}\n"
    words = NEXT.format(
        kubeconfig=kubeconfig or plane.kubeconfig,
        alias=own,
        namespace=examples.NAMESPACE,
        answering=ANSWERING if kubeconfig else "",
        pod_logs=f"\nLogs of the model's pods: {kubeconfig.with_name('node') / 'logs'}" if kubeconfig else "",
        logs=logs,
    )
    try:
        # The first lines offer Ctrl-C, which may arrive before the last ones are printed.
        print(words, flush=True)
        plane.process.wait()
    except KeyboardInterrupt:
        print(flush=True)
        return
    raise CannotRun("the control plane ended")


def _clear(plane: ControlPlane) -> None:
    print(f"\n$ kubectl delete modeldeployments --all -n {examples.NAMESPACE}")
    if left := examples.remove(plane):
        raise CannotRun(f"left behind: {', '.join(left)}")
    print(f"Nothing of theirs is left in namespace {examples.NAMESPACE}, of any kind.", flush=True)
