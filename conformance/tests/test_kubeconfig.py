"""The kubeconfig of a running cluster is read once, and yields the certificate authority for the subject."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_conformance.cases import Unusable
from kubefoundry_conformance.cluster.running import read_kubeconfig
from support import proxy


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    certificate, _ = proxy.certificate(tmp_path)
    return certificate


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_exec_plugin_of_kubeconfig_runs_once(tmp_path: Path, authority: Path) -> None:
    calls = tmp_path / "calls"
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t"}}
    plugin.write_text(f"#!/bin/sh\necho called >> {calls}\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}

    admin, _ = read_kubeconfig(kubeconfig(tmp_path, {"certificate-authority": str(authority)}, user))

    assert admin.token() == "t"
    assert calls.read_text() == "called\n"


def test_certificate_authority_of_kubeconfig_is_kept(tmp_path: Path, authority: Path) -> None:
    path = kubeconfig(tmp_path, {"certificate-authority": str(authority)}, {"token": "t"})

    _, certificates = read_kubeconfig(path)

    expected = ssl.PEM_cert_to_DER_cert(authority.read_text())
    assert ssl.PEM_cert_to_DER_cert(certificates.decode()) == expected


@pytest.mark.parametrize(
    "cluster",
    [
        {"insecure-skip-tls-verify": True},
        {"server": "http://127.0.0.1:8080"},
        {"server": "https://127.0.0.1:6443/clusters/one"},
        {"proxy-url": "http://127.0.0.1:3128"},
    ],
)
def test_kubeconfig_that_no_pod_could_use_is_refused(cluster: dict[str, Any], tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, cluster, {"token": "t"})

    with pytest.raises(Unusable, match="the subject reaches the API server as a pod does"):
        read_kubeconfig(path)
