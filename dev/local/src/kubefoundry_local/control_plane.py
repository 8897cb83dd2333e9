"""A real control plane on this machine: the devcluster, or the cluster that the environment names.

`KUBEFOUNDRY_TEST_KUBECONFIG`: a running cluster to use unchanged. `KUBEBUILDER_ASSETS`: binaries to run instead of
building them (devcluster reads it).
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

ROOT: Final = Path(__file__).parents[4]
"""The checkout with manifests, CRDs and devcluster."""

GIVEN: Final = "KUBEFOUNDRY_TEST_KUBECONFIG"

SERVED: Final = 120.0
"""Longest wait for a CRD to be served, in seconds."""

HANDSHAKE: Final = "net/http: TLS handshake timeout"
"""Error of kubectl without a connection."""

DAY: Final = 86_400

BUILD: Final = ROOT / "dev" / "devcluster" / "build"


class CannotRun(Exception):
    """Raised if a prerequisite is missing or fails; the message has one line with the remedy."""


@dataclass(slots=True)
class ControlPlane:
    """A control plane.

    Attributes:
        kubeconfig: The kubeconfig of an administrator.
        server: The URL of the API server.
        audit_log: JSON lines of all requests, None for a running cluster.
        binary: The devcluster, None for a running cluster.
        process: The process of the devcluster, None for a running cluster.
        pids: The processes of its components by name, empty for a running cluster.
    """

    kubeconfig: Path
    server: str
    audit_log: Path | None
    binary: Path | None
    process: subprocess.Popen[str] | None
    pids: Mapping[str, int] = field(default_factory=dict)

    @property
    def discovered(self) -> Path:
        """Return the folder in which kubectl keeps what it discovers.

        Its default is a folder of the user for each address, and a later control plane may have the same one.
        """
        return self.kubeconfig.parent / "discovered"

    @property
    def kubectl_command(self) -> list[str]:
        """Return the program kubectl, without the kubeconfig."""
        program = [str(self.binary), "kubectl"] if self.binary else ["kubectl"]
        return [*program, "--cache-dir", str(self.discovered)]

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. Raises CannotRun with its output if it fails and `check` is set."""
        result = run_kubectl([*self.kubectl_command, "--kubeconfig", str(self.kubeconfig), *arguments], input)
        if check and result.returncode:
            raise CannotRun(
                f"kubectl {' '.join(arguments[:4])}: {result.stderr.strip() or result.stdout.strip()}"
            )
        return result

    def token(self, namespace: str, account: str) -> str:
        """Return a token of a ServiceAccount that is valid for a day. Raises CannotRun."""
        if self.binary is None:
            result = self.kubectl("create", "token", account, "-n", namespace, "--duration", "24h")
            return result.stdout.strip()
        # A direct request saves a tenth of a second of CPU time for each component of each suite.
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        try:
            response = json.loads(self.answer(path, {"spec": {"expirationSeconds": DAY}}))
        except OSError as error:
            raise CannotRun(f"no token for ServiceAccount {namespace}/{account}: {error}") from error
        return str(response["status"]["token"])

    def answer(self, path: str, body: object = None, seconds: float = SERVED) -> bytes:
        """Send a request as administrator to a local control plane, a POST if there is a body.

        Raises:
            OSError: The request failed, or the response is an error (HTTPError).
        """
        request = urllib.request.Request(
            f"{self.server}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=self.administrator(), timeout=seconds) as response:
            return bytes(response.read())

    def administrator(self) -> ssl.SSLContext:
        """Return the TLS context of an administrator for a local control plane."""
        pki = self.kubeconfig.parent / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return context

    def authority(self) -> bytes:
        """Return the certificate authority of the API server (PEM)."""
        if self.binary is not None:
            return (self.kubeconfig.parent / "pki" / "ca.crt").read_bytes()
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
        return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])

    def wait_served(self, *crds: str) -> None:
        """Wait until the CRDs of these names are served. Raises CannotRun if that takes too long."""
        if self.binary is not None:
            for name in crds:
                self._wait_established(name)
            return
        deadline, names = time.monotonic() + SERVED, [f"crd/{name}" for name in crds]
        # kubectl fails immediately on a CRD without conditions.
        while self.kubectl("wait", "--for=condition=Established", *names, check=False).returncode:
            if time.monotonic() > deadline:
                raise CannotRun(f"not served after {SERVED:.0f} s: {', '.join(crds)}")

    def _wait_established(self, name: str) -> None:
        """Watch a CRD until it is established. Raises CannotRun."""
        query = {"watch": 1, "fieldSelector": f"metadata.name={name}", "timeoutSeconds": f"{SERVED:.0f}"}
        url = f"{self.server}/apis/apiextensions.k8s.io/v1/customresourcedefinitions?{urlencode(query)}"
        try:
            with urllib.request.urlopen(url, context=self.administrator(), timeout=2 * SERVED) as events:
                for line in events:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise CannotRun(f"CRD {name} cannot be watched: {event['object'].get('message')}")
                    conditions = event["object"].get("status", {}).get("conditions") or ()
                    if any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
                        return
        except OSError as error:
            raise CannotRun(f"CRD {name} cannot be watched: {error}") from error
        raise CannotRun(f"not served after {SERVED:.0f} s: {name}")

    def restart_api_server(self) -> None:
        """Restart the API server of a local control plane, and wait until it answers at the same address."""
        self._signal(signal.SIGHUP, "apiserver-ready")

    def stop_api_server(self) -> None:
        """Stop the API server of a local control plane, until `restart_api_server`."""
        self._signal(signal.SIGUSR2, "apiserver-stopped")

    def back_up_etcd(self, folder: Path) -> None:
        """Copy etcd's data of a local control plane to a new folder, while the API server is down."""
        self.stop_api_server()
        shutil.copytree(self.kubeconfig.parent / "etcd", folder)
        self.restart_api_server()

    def restore_etcd(self, folder: Path) -> None:
        """Restart a local control plane at the same address with the data of a backup."""
        if self.process is None or self.binary is None:
            raise CannotRun("the data of a cluster that is not ours are not replaced")
        end(self.process)
        data = self.kubeconfig.parent / "etcd"
        shutil.rmtree(data)
        shutil.copytree(folder, data)
        log = _log(self.kubeconfig.parent)
        self.process = _launch(self.binary, self.kubeconfig.parent, log, ["--keep-data"])
        self.pids = _until_reported(self.process, "ready", log)["pids"]

    def _signal(self, number: signal.Signals, event: str) -> None:
        if self.process is None:
            raise CannotRun("the API server of a cluster that is not ours is not stopped")
        self.process.send_signal(number)
        self.pids = _until_reported(self.process, event, _log(self.kubeconfig.parent))["pids"]


@cache
def build() -> Path:
    """Build the devcluster if its sources changed, and return its binary. Each process calls the build once.

    A build without a cache takes minutes. Its progress goes to stderr.

    Raises:
        CannotRun: There is no checkout, or the build failed.
    """
    if not BUILD.is_file():
        raise CannotRun(
            "a control plane of our own is built from a checkout of KubeFoundry: run it from there"
        )
    result = subprocess.run([str(BUILD)], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        raise CannotRun(f"{BUILD} failed: its last lines say why")
    return Path(result.stdout.strip().splitlines()[-1])


@contextmanager
def control_plane(
    folder: Path, flags: Sequence[str] = (), data: Path | None = None
) -> Iterator[ControlPlane]:
    """Yield the running cluster that the environment names, or else a new local control plane."""
    if kubeconfig := os.environ.get(GIVEN):
        yield existing(Path(kubeconfig))
    else:
        with own_control_plane(folder, flags, data) as plane:
            yield plane


@contextmanager
def own_control_plane(
    folder: Path, flags: Sequence[str] = (), data: Path | None = None
) -> Iterator[ControlPlane]:
    """Start a control plane, and stop it at the end of the block.

    Args:
        folder: The folder of its data.
        flags: Further flags of the devcluster.
        data: The data of etcd of an earlier control plane, of which this one gets a copy; None starts with the CRDs.

    Raises:
        CannotRun: It cannot be built or started.
    """
    binary, log = build(), _log(folder)
    # CRDs are installed before the controllers start, because the garbage collector looks for new kinds only every
    # 30 s.
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


def run_kubectl(command: Sequence[str], input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run kubectl, again if it gets no connection.

    A stalled API server finishes no TLS handshake, and kubectl waits only 10 s for it. Nothing was sent then.
    """
    deadline = time.monotonic() + SERVED
    while True:
        result = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
        if HANDSHAKE not in result.stderr or time.monotonic() > deadline:
            return result


def end(process: subprocess.Popen[str]) -> None:
    """Stop a control plane."""
    process.terminate()
    try:
        process.wait(60)
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
            # Ctrl-C must not reach it: the caller first stops the clients of the control plane.
            start_new_session=True,
            # Go collects garbage at twice the live heap by default. Here CPU is scarcer than memory.
            env={"GOGC": "400", **os.environ},
        )


def existing(kubeconfig: Path) -> ControlPlane:
    """Return a running cluster. Raises CannotRun if there is no kubectl to reach it."""
    if shutil.which("kubectl") is None:
        raise CannotRun("KUBEFOUNDRY_TEST_KUBECONFIG needs kubectl on PATH")
    plane = ControlPlane(kubeconfig, "", None, None, None)
    plane.server = plane.kubectl(
        "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"
    ).stdout.strip()
    return plane


def last_line(log: Path, besides: str = "") -> str:
    """Return the last line of a program's output that is not `besides`."""
    lines = [line for line in log.read_text().splitlines() if line.strip() and line != besides]
    return lines[-1] if lines else "it printed nothing"


def _until_reported(process: subprocess.Popen[str], event: str, log: Path) -> dict[str, Any]:
    """Wait for an event that the process reports in a line of JSON. Raises CannotRun if it ends instead."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{") and (report := json.loads(line)).get("event") == event:
            return dict(report)
    raise CannotRun(f"the control plane ended: {last_line(log, 'devcluster: stopped')}")
