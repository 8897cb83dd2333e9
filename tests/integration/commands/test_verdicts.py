"""Lists, `status`, `doctor`, `wait` and kubectl give one verdict on each model of a real API server."""

from __future__ import annotations

import json
import re
import tarfile
import time
from itertools import pairwise
from pathlib import Path

import pytest

from kubefoundry_cli.support_bundle import QUOTAS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PODS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.edits import running
from support.restarts import stopped
from support.waiting import reason, until_deployment

pytestmark = pytest.mark.integration

SECRET = "S3cr3t-value-0815"
LATEST = 60.0
"""Seconds within which core reports a deletion: five, and time for a disk that stalls."""

ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


@pytest.fixture
def kubefoundry(suite: Suite, namespace: str) -> CommandLine:
    return CommandLine(suite.plane.kubeconfig, namespace)


async def edit(api: Client, namespace: str, spec: Object, **annotations: str) -> None:
    patch = {"spec": spec, "metadata": {"annotations": annotations}}
    operations = [
        {"op": "add", "path": f"/spec/{key}", "value": value} for key, value in patch["spec"].items()
    ]
    if annotations:
        operations.insert(0, {"op": "add", "path": "/metadata/annotations", "value": annotations})
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, operations, manager="test")


async def test_refused_edit_is_visible_everywhere(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kaito")
    await edit(api, namespace, {"engine": {"type": "sglang"}})
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )

    listed, one, doctor, waited = [
        await kubefoundry(*command)
        for command in (("status",), ("status", "m"), ("doctor", "m"), ("wait", "m", "--timeout", "180"))
    ]

    cells = dict(zip(*(line.split() for line in listed.out.splitlines()), strict=True))
    assert (cells["PHASE"], cells["STATE"]) == ("Running", "Refused")
    assert "is refused: " in listed.err
    assert (one.code, "State:      Refused: m " in one.out) == (1, True), one
    assert (doctor.code, "✗ m " in doctor.out, "is refused: " in doctor.out) == (1, True, True), doctor
    assert (waited.code, "is refused: " in waited.err) == (1, True), waited


async def test_paused_edit_is_visible_everywhere(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kuberay")
    await edit(api, namespace, {"env": [{"name": "A", "value": "b"}]}, **{names.PAUSED_ANNOTATION: "true"})

    listed, waited, patient = [
        await kubefoundry(*command)
        for command in (
            ("status",),
            ("wait", "m", "--timeout", "180"),
            ("wait", "m", "--timeout", "1", "--keep-waiting"),
        )
    ]
    head, row = suite.plane.kubectl("get", "md", "m", "-n", namespace).stdout.splitlines()

    cells = dict(zip(*(line.split() for line in listed.out.splitlines()), strict=True))
    assert (cells["PHASE"], cells["STATE"]) == ("Running", "Paused")
    assert (waited.code, "is paused" in waited.err) == (1, True), waited
    assert (patient.code, "is not ready after 1 s" in patient.err) == (6, True), patient
    columns = cells_of(head, row)
    assert (columns["GENERATION"], columns["OBSERVED"]) == ("2", "1")


def cells_of(head: str, row: str) -> dict[str, str]:
    """Return the cells of a line of kubectl by column; an empty cell is an empty text."""
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    cells = [row[start:end].strip() for start, end in pairwise([*starts, None])]
    return dict(zip(head.split(), cells, strict=True))


async def test_deletion_is_shown_everywhere_while_provider_is_down(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    live = await running(api, namespace, GPU, "kuberay")

    def kubectl() -> dict[str, str]:
        head, row = suite.plane.kubectl("get", "md", "m", "-n", namespace).stdout.splitlines()
        return cells_of(head, row)

    before = kubectl()
    with stopped(suite.components["kuberay"]):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])
        at_once = kubectl()
        listed = await kubefoundry("status")
        one = await kubefoundry("status", "m")
        began = time.monotonic()
        await until_deployment(api, "m", namespace, lambda obj: obj["status"]["phase"] == "Terminating")
        seconds = time.monotonic() - began
        later = kubectl()

    assert (before["PHASE"], before["DELETING"]) == ("Running", "")
    assert at_once["DELETING"]
    assert "Terminating" in listed.out
    assert "State:      Deleting" in one.out
    assert (later["PHASE"], later["READY"]) == ("Terminating", "False")
    assert seconds < LATEST, "core takes longer to report a deletion than the contract allows"


async def test_doctor_fails_while_models_hang(kubefoundry: CommandLine, api: Client, namespace: str) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("noprov", namespace, GPU, provider="nosuch"), manager="test"
    )
    await until_deployment(
        api, "noprov", namespace, lambda obj: reason(obj, "ProviderSelected") == "ProviderNotRegistered"
    )

    done = await kubefoundry("doctor")

    [line] = [line for line in done.out.splitlines() if f"model {namespace}/noprov" in line]
    assert done.code == 1
    assert line.startswith("✗") and "waits for a provider" in line
    assert "to install it as an administrator: kubefoundry provider install FILE" in line
    assert line.count("ask an administrator") == 1


async def test_doctor_of_a_serving_model_passes_without_cluster_rights(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kuberay")
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "viewers", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "vera", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await api.create(ROLE_BINDINGS, body, manager="test")

    done = await kubefoundry("doctor", "m", "--as", "vera")

    assert (done.code, "✔ m serves generation 1" in done.out) == (0, True), done


async def test_wait_ends_when_the_model_has_failed(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    failing = model_deployment(
        "m", namespace, GPU, provider="kaito", labels={"kubefoundry.ai/simulator-fail": "image-pull"}
    )
    await api.create(MODEL_DEPLOYMENTS, failing, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: obj.get("status", {}).get("phase") == "Failed")

    done = await kubefoundry("wait", "m", "--timeout", "180")

    assert (done.code, "has failed: " in done.err) == (1, True), done


async def test_edit_without_effect_claims_nothing(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    created = await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")

    scaled, resumed = await kubefoundry("scale", "m", "1"), await kubefoundry("resume", "m")

    assert (scaled.code, "asks for 1 replica already: nothing was changed" in scaled.err) == (0, True), scaled
    assert (resumed.code, "is not paused: nothing was changed" in resumed.err) == (0, True), resumed
    now = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert now["metadata"]["generation"] == created["metadata"]["generation"]


async def test_bundle_has_the_broken_models(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    await running(api, namespace, GPU, "kuberay")
    label = {names.MODEL_LABEL: "m"}
    container = {"name": "main", "image": "x", "env": [{"name": "TOKEN", "value": SECRET}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "worker", "namespace": namespace, "labels": label},
        "spec": {"containers": [container]},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "tight", "namespace": namespace},
        "spec": {"hard": {"pods": "100"}},
    }
    await api.create(PODS, pod, manager="test")
    await api.create(QUOTAS, quota, manager="test")
    file = tmp_path / "bundle.tar.gz"

    done = await kubefoundry("doctor", "--bundle", str(file))

    assert file.exists(), done.err
    with tarfile.open(file) as archive:
        content = {
            one.name.removeprefix("kubefoundry/"): archive.extractfile(one).read()  # type: ignore[union-attr]
            for one in archive.getmembers()
        }
    held = {name: json.loads(data) for name, data in content.items() if name.endswith(".json")}
    named = {
        name: [one["metadata"]["name"] for one in held[name]]
        for name in ("upstream/rayservices.json", "model-pods.json", "quotas.json")
    }
    assert [*named.values()] == [["m"], ["worker"], ["tight"]]
    assert held["quotas.json"][0]["spec"]["hard"] == {"pods": "100"}
    assert [name for name, data in content.items() if SECRET.encode() in data] == []
    assert not [line for line in held["missing.json"] if "CRD" in line], held["missing.json"]


async def test_lists_are_kubernetes_lists(kubefoundry: CommandLine, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kuberay")

    listed = json.loads((await kubefoundry("status", "-o", "json")).out)
    named = await kubefoundry("status", "modeldeployment/m", "-o", "name")

    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert [one["metadata"]["name"] for one in listed["items"]] == ["m"]
    assert named.out == "modeldeployment.kubefoundry.ai/m\n"
