"""Whatever a test leaves on a control plane, the next one finds none of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.control_plane import ControlPlane
from support.deployments import CPU, model_deployment
from support.etcd import Etcd
from support.ground import prepared_plane
from support.upstream import STANDINS, standin
from support.waiting import SECONDS

pytestmark = pytest.mark.integration

KINDS = "namespaces,crd,clusterroles,configmaps,md,leases,mutatingwebhookconfigurations"


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Also where the environment names a cluster, which nobody puts back."""
    monkeypatch.delenv("KUBEFOUNDRY_TEST_KUBECONFIG", raising=False)
    yield


def seen(plane: ControlPlane) -> dict[str, Any]:
    """Objects by kind and name, without their versions and what the API server renews."""
    listed = json.loads(plane.kubectl("get", KINDS, "-A", "-o", "json").stdout)["items"]
    found = {}
    for obj in listed:
        meta = obj["metadata"]
        # the API server's own Lease; the second name is that of Kubernetes 1.26
        if not meta["name"].startswith(("apiserver-", "kube-apiserver-")):
            spec = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
            found[f"{obj['kind']} {meta.get('namespace')}/{meta['name']}"] = (
                meta["uid"],
                meta.get("labels"),
                spec,
            )
    return found


def disturb(plane: ControlPlane) -> None:
    """Something new, something changed and something gone, of kinds that others act on."""
    held = model_deployment("held", "left", CPU)
    held["metadata"]["finalizers"] = ["example.com/never-removed"]
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "left"},
        "webhooks": [],
    }
    plane.kubectl("create", "namespace", "left")
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all([held, hook, standin("kaito").document]))
    plane.kubectl("delete", "md", "held", "-n", "left", "--wait=false")
    plane.kubectl("label", "crd", "modeldeployments.kubefoundry.ai", "left=here")
    plane.kubectl("delete", "clusterrole", "-l", "rbac.authorization.k8s.io/aggregate-to-view=true")


def test_reused_plane_has_no_content_of_the_last_test(ours: None, tmp_path: Path) -> None:
    with prepared_plane(tmp_path, ()) as first:
        before = seen(first)
        disturb(first)
        assert seen(first) != before

    with prepared_plane(tmp_path, ()) as second:
        assert second is first
        assert seen(second) == before
        # and it takes what the last one had, as if for the first time
        second.kubectl("create", "namespace", "left")
        assert second.audit_log is not None
        assert "never-removed" not in second.audit_log.read_text()


def test_kubectl_reads_the_versions_that_are_served_now(ours: None, tmp_path: Path) -> None:
    crd = "modeldeployments.kubefoundry.ai"
    with prepared_plane(tmp_path, ()) as first:
        versions = json.loads(first.kubectl("get", "crd", crd, "-o", "json").stdout)["spec"]["versions"]
        newer = {**versions[0], "name": "v9", "storage": False}
        patch = [{"op": "add", "path": "/spec/versions/-", "value": newer}]
        first.kubectl("patch", "crd", crd, "--type=json", "-p", json.dumps(patch))
        ends = time.monotonic() + SECONDS
        while "kubefoundry.ai/v9" not in first.kubectl("api-versions").stdout:
            assert time.monotonic() < ends, "v9 is not served"
        first.kubectl("get", "md", "-A")

    with prepared_plane(tmp_path, ()) as second:
        assert second is first
        second.kubectl("get", "md", "-A")


def test_broken_plane_is_not_reused(ours: None, tmp_path: Path) -> None:
    with prepared_plane(tmp_path, ()) as first:
        first.stop_api_server()

    with prepared_plane(tmp_path, ()) as second:
        assert second is not first
        assert "Namespace None/default" in seen(second)


def test_plane_that_deletes_a_namespace_is_not_reused(ours: None, tmp_path: Path) -> None:
    flags = ["--all-controllers"]
    meta = {"name": "m", "namespace": "left", "finalizers": ["example.com/never-removed"]}
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with prepared_plane(tmp_path, (), flags) as first:
        first.kubectl("create", "namespace", "left")
    with prepared_plane(tmp_path, (), flags) as second:
        second.kubectl("create", "namespace", "left")
        second.kubectl("apply", "-f", "-", input=yaml.safe_dump(held))
        second.kubectl("delete", "namespace", "left", "--wait=false")

    with prepared_plane(tmp_path, (), flags) as third:
        assert second is first
        assert third is not second


def test_another_ground_is_another_control_plane(ours: None, tmp_path: Path) -> None:
    with (
        prepared_plane(tmp_path, ()) as bare,
        prepared_plane(tmp_path, [STANDINS / "kaito.yaml"]) as more,
    ):
        name = standin("kaito").document["metadata"]["name"]
        assert f"CustomResourceDefinition None/{name}" not in seen(bare)
        assert f"CustomResourceDefinition None/{name}" in seen(more)


def test_etcd_has_one_change_of_a_resource_at_a_revision(tmp_path: Path, ours: None) -> None:
    with prepared_plane(tmp_path, (), own=True) as plane:
        etcd = Etcd(plane.kubeconfig.parent)
        keys = [b"/registry/configmaps/default/%d" % number for number in range(3)]
        group = [b"/registry/example.com/things/default/%d" % number for number in range(3)]
        etcd.write(dict.fromkeys([*keys, *group], b"{}"), ())

        revisions = etcd.revisions()

        assert len({revisions[key] for key in keys}) == 3
        assert [revisions[key] for key in group] == [revisions[key] for key in keys]
        etcd.write({}, [*keys, *group])
        assert not {*keys, *group} & etcd.revisions().keys()
