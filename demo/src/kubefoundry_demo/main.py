"""`make demo`: the whole suite on this machine, from nothing to four ModelDeployments that run.

Stays up until Ctrl-C; with `CI=true` it deletes everything, shows that nothing is left, and ends.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

from kubefoundry_demo import examples
from kubefoundry_local.control_plane import CannotRun, ControlPlane, own_control_plane
from kubefoundry_local.suite import COMPONENTS, Suite
from kubefoundry_local.upstream_crds import RELEASES, upstream_crds

SPEED: Final = "1"
"""Recorded seconds of the upstream operators that pass in one: what was recorded took them ten seconds at most."""

SHOWN: Final = "llama-8b"
"""The example whose upstream object is printed: it names no provider."""

INTRODUCTION: Final = """\
KubeFoundry on this machine: a real Kubernetes API server, our five processes
with their own permissions, and SIMULATED upstream operators: they report what
the real ones were seen to report, but no pod runs and no model answers.
"""

NEXT: Final = """
All of it stays up until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
{alias}  kubectl get md -A
  kubectl describe md llama-8b -n {namespace}
  kubectl scale md qwen-ray -n {namespace} --replicas=3
  kubectl get ipc
  kubectl explain md.spec.scaling
  kubectl delete md gemma-cpu -n {namespace}

md: ModelDeployments, ipc: the providers (InferenceProviderConfigs).
Logs of the processes: {logs}
"""


def main() -> None:
    """Console script. Exit code 1 with one line when something is missing or fails, 130 when interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        folder = Path(tempfile.mkdtemp(prefix="kubefoundry-demo-"))
        try:
            demonstrate(folder, stays=os.environ.get("CI") != "true")
        except CannotRun as problem:
            sys.exit(f"kubefoundry-demo: {problem} (all logs: {folder})")
        shutil.rmtree(folder)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"kubefoundry-demo: {error}")
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        sys.exit(130)


def demonstrate(folder: Path, *, stays: bool) -> None:
    """The demo from start to end; `stays` waits for Ctrl-C before the end. Raises CannotRun, KeyboardInterrupt."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    print(INTRODUCTION, flush=True)
    crds = upstream_crds()
    flags = [flag for crd in crds for flag in ("--crds", str(crd.file))]
    say("starting the control plane")
    with own_control_plane(folder / "plane", flags) as plane:
        say(f"upstream CRDs: {', '.join(crd.label for crd in crds)}")
        suite = Suite(plane, folder / "logs")
        try:
            suite.install_ground()
            suite.simulate(*RELEASES, flags=["--speed", SPEED])
            suite.start()
            say(f"processes: {', '.join(COMPONENTS)}")
            _show_examples(plane, started)
            if stays:
                stay(plane, suite.folder)
            else:
                _clear(plane)
        finally:
            # The rest must end, however impatient the user.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            suite.stop()
    say("ended")


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


def stay(plane: ControlPlane, logs: Path) -> None:
    """Says what can be tried, and waits for Ctrl-C. Raises CannotRun when the control plane ends by itself."""
    assert plane.process is not None
    own = "" if shutil.which("kubectl") else f"  alias kubectl={shlex.quote(f'{plane.binary} kubectl')}\n"
    words = NEXT.format(kubeconfig=plane.kubeconfig, alias=own, namespace=examples.NAMESPACE, logs=logs)
    try:
        # Ctrl-C is offered with the first of these words, and may come while the last are still on their way.
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
