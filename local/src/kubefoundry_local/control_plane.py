"""A real control plane on this machine: our devcluster, or the one that the environment names.

`KUBEFOUNDRY_TEST_KUBECONFIG`: a running cluster to use unchanged. `KUBEBUILDER_ASSETS`: binaries to run instead of
building ours (devcluster reads it).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

ROOT: Final = Path(__file__).parents[3]
"""The checkout with manifests, CRDs and devcluster."""

GIVEN: Final = "KUBEFOUNDRY_TEST_KUBECONFIG"

SERVED: Final = 30.0
"""Seconds until a CRD has to be served."""

DAY: Final = 86_400

BUILD: Final = ROOT / "devcluster" / "build"


class CannotRun(Exception):
    """One line: what is missing or failed, and what to do."""


@dataclass(slots=True)
class ControlPlane:
    """kubeconfig: an administrator's. audit_log: JSON lines of all requests, if the server is ours.

    pids: the processes of its components, if they are ours.
    """

    kubeconfig: Path
    server: str
    audit_log: Path | None
    binary: Path | None
    process: subprocess.Popen[str] | None
    pids: Mapping[str, int] = field(default_factory=dict)

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as administrator. Raises CannotRun with its output if it fails and `check` is set."""
        program = [str(self.binary), "kubectl"] if self.binary else ["kubectl"]
        done = subprocess.run(
            [*program, "--kubeconfig", str(self.kubeconfig), *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise CannotRun(
                f"kubectl {' '.join(arguments[:4])}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done

    def token(self, namespace: str, account: str) -> str:
        """A token of that ServiceAccount, valid for a day. Raises CannotRun."""
        if self.binary is None:
            made = self.kubectl("create", "token", account, "-n", namespace, "--duration", "24h")
            return made.stdout.strip()
        # kubectl takes a tenth of a second of CPU time, for each component of each suite.
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        try:
            made = json.loads(self.answer(path, {"spec": {"expirationSeconds": DAY}}))
        except OSError as error:
            raise CannotRun(f"no token for ServiceAccount {namespace}/{account}: {error}") from error
        return str(made["status"]["token"])

    def answer(self, path: str, body: object = None, seconds: float = SERVED) -> bytes:
        """What the API server answers the administrator, to a POST if there is a body; ours only.

        Raises OSError, which HTTPError is, too.
        """
        request = urllib.request.Request(
            f"{self.server}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=self.administrator(), timeout=seconds) as answer:
            return bytes(answer.read())

    def administrator(self) -> ssl.SSLContext:
        """For connections to the API server as administrator; ours only."""
        pki = self.kubeconfig.parent / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return context

    def authority(self) -> bytes:
        """The certificate that signed the API server's, as PEM."""
        if self.binary is not None:
            return (self.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
        return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])

    def wait_served(self, *crds: str) -> None:
        """Waits until the CRDs of these names are served. Raises CannotRun if that takes too long."""
        if self.binary is not None:
            for name in crds:
                self._wait_established(name)
            return
        until, names = time.monotonic() + SERVED, [f"crd/{name}" for name in crds]
        # kubectl fails immediately on a CRD that has no conditions at all yet.
        while self.kubectl("wait", "--for=condition=Established", *names, check=False).returncode:
            if time.monotonic() > until:
                raise CannotRun(f"not served after {SERVED:.0f} s: {', '.join(crds)}")

    def _wait_established(self, name: str) -> None:
        """Watches the CRD. Raises CannotRun."""
        asked = {"watch": 1, "fieldSelector": f"metadata.name={name}", "timeoutSeconds": f"{SERVED:.0f}"}
        url = f"{self.server}/apis/apiextensions.k8s.io/v1/customresourcedefinitions?{urlencode(asked)}"
        try:
            with urllib.request.urlopen(url, context=self.administrator(), timeout=2 * SERVED) as events:
                for line in events:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise CannotRun(f"CRD {name} cannot be watched: {event['object'].get('message')}")
                    conditions = event["object"].get("status", {}).get("conditions") or ()
                    if ("Established", "True") in ((one["type"], one["status"]) for one in conditions):
                        return
        except OSError as error:
            raise CannotRun(f"CRD {name} cannot be watched: {error}") from error
        raise CannotRun(f"not served after {SERVED:.0f} s: {name}")

    def restart_api_server(self) -> None:
        """Stops kube-apiserver and waits until a new one answers at the same address; ours only."""
        self._ask(signal.SIGHUP, "apiserver-ready")

    def stop_api_server(self) -> None:
        """Starts an outage, which `restart_api_server` ends; ours only."""
        self._ask(signal.SIGUSR2, "apiserver-stopped")

    def back_up_etcd(self, folder: Path) -> None:
        """Copies etcd's data to a new directory while the API server is down; ours only."""
        self.stop_api_server()
        shutil.copytree(self.kubeconfig.parent / "etcd", folder)
        self.restart_api_server()

    def restore_etcd(self, folder: Path) -> None:
        """Restarts the control plane at the same address with the data of a backup; ours only."""
        if self.process is None or self.binary is None:
            raise CannotRun("the data of a cluster that is not ours are not replaced")
        end(self.process)
        data = self.kubeconfig.parent / "etcd"
        shutil.rmtree(data)
        shutil.copytree(folder, data)
        log = _log(self.kubeconfig.parent)
        self.process = _launch(self.binary, self.kubeconfig.parent, log, ["--keep-data"])
        self.pids = _until_reported(self.process, "ready", log)["pids"]

    def _ask(self, number: signal.Signals, event: str) -> None:
        if self.process is None:
            raise CannotRun("the API server of a cluster that is not ours is not stopped")
        self.process.send_signal(number)
        self.pids = _until_reported(self.process, event, _log(self.kubeconfig.parent))["pids"]


@cache
def build() -> Path:
    """The devcluster binary, built if its sources changed; looked up once a process.

    A build takes minutes when nothing is cached; its progress goes to stderr.
    """
    if not BUILD.is_file():
        raise CannotRun(
            "a control plane of our own is built from a checkout of KubeFoundry: run it from there"
        )
    done = subprocess.run([str(BUILD)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CannotRun(f"{BUILD} failed: its last lines say why")
    return Path(done.stdout.strip().splitlines()[-1])


@contextmanager
def control_plane(
    folder: Path, flags: Sequence[str] = (), data: Path | None = None
) -> Iterator[ControlPlane]:
    """The control plane that the environment names, which is left running, else one of our own."""
    if given := os.environ.get(GIVEN):
        yield existing(Path(given))
    else:
        with own_control_plane(folder, flags, data) as plane:
            yield plane


@contextmanager
def own_control_plane(
    folder: Path, flags: Sequence[str] = (), data: Path | None = None
) -> Iterator[ControlPlane]:
    """A control plane with its data in `folder`; it stops with the block.

    data: etcd's, of an earlier control plane; this one starts with a copy. Without it, with our CRDs only.
    """
    binary, log = build(), _log(folder)
    # The garbage collector handles CRDs that exist before the controllers start from the first second on; it looks
    # for new kinds only every 30 s.
    first = ["--data", str(data)] if data else ["--crds", str(ROOT / "crds")]
    process = _launch(binary, folder, log, [*first, *flags])
    plane = None
    try:
        report = _until_reported(process, "ready", log)
        plane = ControlPlane(
            Path(report["kubeconfig"]),
            report["server"],
            Path(report["auditLog"]),
            binary,
            process,
            report["pids"],
        )
        yield plane
    finally:
        end(plane.process if plane and plane.process else process)


def end(process: subprocess.Popen[str]) -> None:
    """Stops a control plane, within five seconds."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _log(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")


def _launch(binary: Path, folder: Path, log: Path, flags: Sequence[str]) -> subprocess.Popen[str]:
    with log.open("ab") as stderr:
        return subprocess.Popen(
            [str(binary), "up", "--dir", str(folder), *flags],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            # Ctrl-C is for the caller, which first stops the clients of the control plane.
            start_new_session=True,
            # Go collects garbage at twice the live heap; here CPU is scarcer than memory.
            env={"GOGC": "400", **os.environ},
        )


def existing(kubeconfig: Path) -> ControlPlane:
    """A cluster that is already running. Raises CannotRun without a kubectl to reach it."""
    if shutil.which("kubectl") is None:
        raise CannotRun("KUBEFOUNDRY_TEST_KUBECONFIG needs kubectl on PATH")
    plane = ControlPlane(kubeconfig, "", None, None, None)
    plane.server = plane.kubectl(
        "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"
    ).stdout.strip()
    return plane


def last_line(log: Path, besides: str = "") -> str:
    """The last line that a program printed, except that one."""
    said = [line for line in log.read_text().splitlines() if line.strip() and line != besides]
    return said[-1] if said else "it said nothing"


def _until_reported(process: subprocess.Popen[str], event: str, log: Path) -> dict[str, Any]:
    """Waits for an event that it reports in a line of JSON. Raises CannotRun if it ends instead."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and (report := json.loads(line)).get("event") == event:
            return dict(report)
    raise CannotRun(f"the control plane ended: {last_line(log, 'devcluster: stopped')}")
