"""`kubefoundry plan` on objects that others created or changed, and while another provider still serves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CLAIMS, MODEL_DEPLOYMENTS, PODS, SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import CPU, GPU, model_deployment
from support.edits import ADMIN, running
from support.kinds import GRAPHS, QUOTAS
from support.output_schema import checked
from support.waiting import AGAIN, SECONDS, message, reason, serves, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def kubefoundry(suite: Suite, namespace: str) -> CommandLine:
    return CommandLine(suite.plane.kubeconfig, namespace)


def written(folder: Path, obj: Object) -> str:
    file = folder / "m.yaml"
    file.write_text(yaml.safe_dump(obj))
    return str(file)


async def full(suite: Suite, api: Client, namespace: str, resource: str) -> None:
    """A quota that refuses each new object of the resource. No quota controller runs here: its status is written."""
    held = f"count/{resource}"
    suite.plane.kubectl("create", "quota", "none", f"--hard={held}=0", "-n", namespace)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": namespace},
        "status": {"hard": {held: "0"}, "used": {held: "0"}},
    }
    await api.apply_status(QUOTAS, quota, manager="admin")


async def service_of_others(api: Client, namespace: str, name: str) -> Object:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}},
    }
    return await api.create(SERVICES, body, manager="somebody")


async def test_plan_fails_when_dry_run_of_server_is_refused(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await full(suite, api, namespace, "deployments.apps")
    file = written(tmp_path, model_deployment("m", namespace, CPU, provider="direct"))

    text = await kubefoundry("plan", "-f", file, "--server")
    document = await kubefoundry("plan", "-f", file, "--server", "-o", "json")
    without = await kubefoundry("plan", "-f", file)

    assert (text.code, document.code, without.code) == (1, 1, 0)
    assert "dry run: refused: Deployment 'm' was refused: " in text.out
    assert "in a dry run, so the edit would not be applied: Deployment 'm' was refused: " in text.err
    assert json.loads(document.out)["dryRun"].startswith("refused: Deployment 'm' was refused: ")


async def test_plan_names_missing_claims_and_creates_none(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    volume = {"name": "weights", "purpose": "modelCache", "claimTemplate": {"size": "1Gi"}}
    spec = {**CPU, "model": {**CPU["model"], "storage": {"volumes": [volume]}}}
    file = written(tmp_path, model_deployment("m", namespace, spec, provider="direct"))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    before = await kubefoundry("plan", "-f", file, "--server")
    # This also shows that the plan has not created it.
    meta = {"name": "m-weights", "namespace": namespace}
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim}
    await api.create(CLAIMS, made, manager="test")
    after = await kubefoundry("plan", "-f", file, "--server")

    note = (
        "note: core first creates PersistentVolumeClaim m-weights (1Gi, ReadWriteOnce, the default StorageClass), "
        "which stays when the model is deleted\n"
    )
    assert (before.code, after.code) == (0, 0)
    assert note in before.err
    assert "core first creates" not in after.err


async def test_plan_names_permission_that_the_caller_lacks(
    kubefoundry: CommandLine, suite: Suite, namespace: str, tmp_path: Path
) -> None:
    suite.plane.kubectl("create", "rolebinding", "v", "--clusterrole=view", "--user=ann", "-n", namespace)
    question = ("auth", "can-i", "get", "services", "-n", namespace, "--as", "ann")
    async with asyncio.timeout(SECONDS):
        # the API server learns of the binding a moment later
        while True:
            if not suite.plane.kubectl(*question, check=False).returncode:
                break
            await asyncio.sleep(AGAIN)
    file = written(tmp_path, model_deployment("m", namespace, CPU, provider="direct"))

    done = await kubefoundry("plan", "-f", file, "--server", "--as", "ann")

    assert "dry run: not tried: Service 'm-server' was refused: " in done.out, done
    assert 'User "ann" cannot patch resource "services"' in done.err
    assert (done.code, "ServiceAccount" in done.err) == (5, False)


async def test_plan_of_several_models_has_the_worst_exit_code(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    body = model_deployment("m", namespace, CPU, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    edited = {**body, "spec": {**body["spec"], "scaling": {"replicas": 2}}}
    refused = model_deployment("refused", namespace, GPU, provider="no-such")
    new = model_deployment("new", namespace, CPU, provider="direct")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    file = tmp_path / "models.yaml"
    file.write_text(yaml.safe_dump_all([edited, secret, refused, new]))

    text = await kubefoundry("plan", "-f", str(file))
    document = await kubefoundry("plan", "-f", str(file), "-o", "json")
    explained = await kubefoundry("explain", "-f", str(file), "-o", "json")

    assert (text.code, document.code, explained.code) == (1, 1, 1)
    assert f"Deployment {namespace}/m   CHANGED IN PLACE" in text.out
    assert f"Deployment {namespace}/new   CREATED" in text.out
    assert "error: ModelDeployment 'refused' names provider no-such, which is not registered" in text.err
    assert "also has Secret, which this command skips" in text.err
    assert [plan["name"] for plan in checked("plan", document.out)] == ["m", "new"]
    assert [answer["name"] for answer in checked("explain", explained.out)] == ["m", "refused", "new"]


async def test_plan_predicts_name_conflict_of_helper(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    await service_of_others(api, namespace, "m-server")
    body = model_deployment("m", namespace, CPU, provider="direct")

    planned = await kubefoundry("plan", "-f", written(tmp_path, body))
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )

    assert planned.code == 1
    assert planned.err.strip().removeprefix("error: ") == message(refused, "ResourceCreated")


async def test_file_and_set_foresee_the_same_hand_over(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    live = await until_deployment(api, "m", namespace, serves)
    sizes = ("--set", "resources.memory=", "--set", "resources.cpu=", "--set", "resources.gpu.count=1")
    edit = ("--set", "engine.type=sglang", "--set", "image=", *sizes)
    content = {**GPU, "engine": {"type": "sglang"}}
    file = written(tmp_path, model_deployment("m", namespace, content))

    by_set = await kubefoundry("plan", "m", *edit, "-o", "json")
    by_file = await kubefoundry("plan", "-f", file, "--set", "image=", *sizes, "-o", "json")
    explained = await kubefoundry("explain", "-f", file)

    assert live["status"]["provider"]["name"] == "kaito"
    assert json.loads(by_set.out)["handOver"]["from"] == "kaito"
    assert json.loads(by_file.out)["handOver"] == json.loads(by_set.out)["handOver"], by_file
    assert explained.out.startswith("after this edit, dynamo is selected: "), explained


async def test_plan_shows_drift_that_will_be_put_back(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    assert (await kubefoundry("pause", "m")).code == 0
    edit = [{"op": "replace", "path": "/spec/services/VllmWorker/replicas", "value": 5}]
    await api.json_patch(GRAPHS, "m", namespace, edit, manager=ADMIN)

    text = await kubefoundry("plan", "m")
    document = await kubefoundry("plan", "m", "-o", "json")

    assert text.code == 0, text.err
    assert "CHANGED IN PLACE; paused: nothing changes until " in text.out
    assert f"VllmWorker.replicas   ← put back: changed by {ADMIN}\n  - 5\n  + 1\n" in text.out
    [change] = json.loads(document.out)["changes"]
    assert (change["old"], change["new"], change["changedBy"], change["fields"]) == (5, 1, ADMIN, [])


async def test_pods_and_plan_name_the_serving_provider_in_a_handover(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    await full(suite, api, namespace, "rayservices.ray.io")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "worker",
            "namespace": namespace,
            "labels": {"nvidia.com/dynamo-graph-deployment-name": "m"},
        },
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    await api.create(PODS, pod, manager="test")
    name = [{"op": "add", "path": "/spec/provider", "value": {"name": "kuberay"}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, name, manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: "cannot take over" in (obj["status"].get("message") or "")
    )

    status = await kubefoundry("status", "m")
    logs = await kubefoundry("logs", "m")
    planned = await kubefoundry("plan", "m")
    document = await kubefoundry("plan", "m", "-o", "json")

    assert "  · worker  Pending" in status.out, status
    assert "worker/main: not scheduled yet" in logs.err
    assert (
        "HAND-OVER (creates RayService 'm' on kuberay; then deletes DynamoGraphDeployment 'm' of dynamo, which "
        "serves until kuberay can take over)"
    ) in planned.out
    assert json.loads(document.out)["handOver"] == {
        "from": "dynamo",
        "deleted": "DynamoGraphDeployment 'm'",
        "created": "RayService 'm'",
    }


async def test_plan_tries_a_variable_that_changes_its_source(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    source = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    spec = {**GPU, "image": "example.com/engine:1.0.0", "env": [source]}
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec, provider="direct"), manager="test"
    )
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )

    planned = await kubefoundry("plan", "m", "--server", "--set", "env=[{name: A, value: b}]")

    assert (planned.code, "CHANGED IN PLACE   dry run: accepted" in planned.out) == (0, True), planned
