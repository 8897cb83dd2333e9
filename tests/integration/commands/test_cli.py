"""The commands on a real API server with the whole suite."""

from __future__ import annotations

import copy
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.edit import annotation, write
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.redaction import REMOVED
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PODS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import UPSTREAM
from support.output_schema import checked
from support.restarts import restarted
from support.upstream import STANDINS, standin
from support.waiting import phase, until, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def kubefoundry(suite: Suite, namespace: str) -> CommandLine:
    return CommandLine(suite.plane.kubeconfig, namespace)


async def test_model_is_shown_from_deploy_to_status(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    refused = await kubefoundry("deploy", "org/model", "m")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    assert (await api.list(MODEL_DEPLOYMENTS, namespace))[0] == []

    done = await kubefoundry("deploy", "org/model", "m", "--provider", "kuberay", "--yes", "--wait")
    assert done.code == 0, done.err
    assert "ready at" in done.err

    listed = await kubefoundry("status")
    assert [line.split()[:4] for line in listed.out.splitlines()] == [
        ["NAME", "PHASE", "READY", "STATE"],
        ["m", "Running", "True", "Serving"],
    ]
    one = await kubefoundry("status", "m")
    assert (one.code, "RayService 'm'" in one.out, "✔ Ready: DeploymentReady" in one.out) == (0, True, True)
    again = await kubefoundry("deploy", "org/model", "m", "--yes")
    assert (again.code, "exists in namespace" in again.err) == (1, True)


async def test_unregistered_provider_is_a_warning_without_a_wait(
    kubefoundry: CommandLine, namespace: str
) -> None:
    done = await kubefoundry("deploy", "org/model", "m", "--provider", "nosuch", "--yes", "--wait")

    assert done.code == 1
    assert "warning: " in done.err
    assert "waits for a provider: " in done.err
    assert f"kubefoundry status m -n {namespace}" in done.err


async def test_plan_predicts_the_effect_of_an_edit(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    before = await api.get(UPSTREAM["dynamo"], "m", namespace)

    done = await kubefoundry("plan", "m", "--set", "engine.contextLength=4096", "--server", "-o", "json")

    assert done.code == 0, done.err
    planned = json.loads(done.out)
    assert (planned["dryRun"], planned["recreate"]) == ("accepted", None)
    assert planned["changes"]
    assert {field for change in planned["changes"] for field in change["fields"]} == {
        "spec.engine.contextLength"
    }
    # asking changed nothing
    assert (await api.get(UPSTREAM["dynamo"], "m", namespace))["metadata"]["generation"] == before[
        "metadata"
    ]["generation"]
    edit = [{"op": "add", "path": "/spec/engine/contextLength", "value": 4096}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")
    after = await until(
        api,
        UPSTREAM["dynamo"],
        "m",
        namespace,
        lambda obj: obj is not None and obj["metadata"]["generation"] > before["metadata"]["generation"],
    )
    assert after is not None
    for change in planned["changes"]:
        if "new" in change and "args" in change["path"]:
            assert change["new"] in json.dumps(after["spec"])
    nothing = await kubefoundry("plan", "m")
    assert (nothing.code, "UNCHANGED" in nothing.out) == (0, True)


async def test_plan_shows_hand_over_of_selected_provider(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    edits = ("--set", "engine.type=llamacpp", "--set", "resources.gpu=", "--set", "image=example.com/llama:1")

    planned = await kubefoundry("plan", "m", *edits, "-o", "json")
    explained = await kubefoundry("explain", "m", *edits)

    assert planned.code == 0, planned.err
    document = json.loads(planned.out)
    assert document["handOver"]["from"] == "dynamo"
    assert document["handOver"]["deleted"] == "DynamoGraphDeployment 'm'"
    assert document["handOver"]["created"].startswith("Workspace 'm'")
    assert explained.out.startswith("after this edit, kaito is selected: ")
    assert document["kind"] == "Workspace"


async def test_plan_reports_pause_of_model(kubefoundry: CommandLine, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")
    assert (await kubefoundry("pause", "m")).code == 0

    done = await kubefoundry("plan", "m", "--set", "engine.contextLength=4096")

    assert done.code == 0, done.err
    assert f"CHANGED IN PLACE; paused: nothing changes until kubefoundry resume m -n {namespace}" in done.out


async def test_plan_of_new_model_uses_selected_provider(
    kubefoundry: CommandLine, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump(model_deployment("m", namespace, GPU)))

    done = await kubefoundry("plan", "-f", str(file))

    assert (done.code, done.out.split("   ")[:2]) == (
        0,
        [f"DynamoGraphDeployment {namespace}/m", "CREATED\n  DynamoGraphDeployment.apiVersion"],
    ), done


async def test_plan_renders_as_the_provider_that_runs(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    file, image = tmp_path / "m.yaml", "example.com/ray:2.54.0"
    file.write_text(yaml.safe_dump(model_deployment("m", namespace, GPU, provider="kuberay")))

    with restarted(suite.components["kuberay"], {"KUBEFOUNDRY_DEFAULT_IMAGE": f"vllm={image}"}):
        await until(api, PROVIDER_CONFIGS, "kuberay", None, lambda obj: image in published(obj))
        done = await kubefoundry("plan", "-f", str(file))
        seen = await kubefoundry("doctor")
    await until(api, PROVIDER_CONFIGS, "kuberay", None, lambda obj: image not in published(obj))

    assert done.code == 0, done.err
    assert f"+ {image}" in done.out
    assert f"with --default-image=vllm={image}" in done.err
    assert f"--default-image=vllm={image}" in seen.out


def published(obj: Object | None) -> str:
    return str((obj or {}).get("status", {}).get("flags"))


async def test_explain_uses_the_registered_providers(
    kubefoundry: CommandLine, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump(model_deployment("m", namespace, GPU)))

    done = await kubefoundry("explain", "-f", str(file))

    assert done.code == 0, done.err
    assert done.out.startswith("default → dynamo")
    assert "kuberay: would accept it if named" in done.out


async def test_small_writes(kubefoundry: CommandLine, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kuberay")

    for arguments, holds in (
        (("scale", "m", "2"), lambda obj: obj["spec"]["scaling"]["replicas"] == 2),
        (("pause", "m"), lambda obj: "kubefoundry.ai/reconcile-paused" in obj["metadata"]["annotations"]),
        (
            ("resume", "m"),
            lambda obj: "kubefoundry.ai/reconcile-paused" not in obj["metadata"].get("annotations", {}),
        ),
        (("refresh", "m", "--yes"), lambda obj: "kubefoundry.ai/refresh" in obj["metadata"]["annotations"]),
    ):
        done = await kubefoundry(*arguments)
        assert done.code == 0, done.err
        assert holds(await api.get(MODEL_DEPLOYMENTS, "m", namespace)), arguments
    assert (await kubefoundry("refresh", "m")).code == 2


async def test_deploy_names_a_missing_namespace(suite: Suite) -> None:
    done = await CommandLine(suite.plane.kubeconfig, "nosuch")("deploy", "org/model", "m", "--yes")

    assert (done.code, "namespace nosuch does not exist; name another one with -n" in done.err) == (
        1,
        True,
    ), done


async def test_scale_that_the_provider_refuses_changes_nothing(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, GPU, "kaito")

    done = await kubefoundry("scale", "m", "2")

    assert (done.code, "KAITO serves 1 replica, not 2" in done.err) == (1, True), done
    assert done.err.endswith("Nothing was changed\n")
    after = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


async def test_small_write_reports_pause_that_holds_it(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, GPU, annotations={names.PAUSED_ANNOTATION: "true"})
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    resume = f"paused: nothing changes until kubefoundry resume m -n {namespace}"

    scaled = await kubefoundry("scale", "m", "2")
    again = await kubefoundry("scale", "m", "2")
    refreshed = await kubefoundry("refresh", "m", "--yes")
    resumed = await kubefoundry("resume", "m")

    assert [one.code for one in (scaled, again, refreshed, resumed)] == [0] * 4
    assert f"scaled to 2 replicas, but it has no effect now: {resume}" in scaled.err
    assert f"asks for 2 replicas already: nothing was changed; {resume}" in again.err
    assert f"will be rendered again, but it has no effect now: {resume}" in refreshed.err
    assert resumed.err.endswith("is resumed\n")


@pytest.mark.parametrize(
    "command",
    [("scale", "m", "2"), ("pause", "m"), ("resume", "m"), ("refresh", "m", "-y")],
    ids=lambda one: one[0],
)
async def test_small_write_refuses_model_being_deleted(
    kubefoundry: CommandLine, api: Client, namespace: str, command: tuple[str, ...]
) -> None:
    body = model_deployment("m", namespace, GPU, finalizers=["example.com/held"])
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    done = await kubefoundry(*command)

    assert (done.code, "ModelDeployment 'm' is being deleted, held by " in done.err) == (1, True), done
    assert (await api.get(MODEL_DEPLOYMENTS, "m", namespace))["spec"] == made["spec"]
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, release, manager="test")


async def test_waiting_ends_with_the_words_of_a_refusal(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    spec = {**GPU, "engine": {"type": "sglang"}}
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec, provider="kaito"), manager="test"
    )

    done = await kubefoundry("wait", "m", "--timeout", "180")

    assert (done.code, "does not support sglang" in done.err) == (1, True), done.err
    await api.delete(
        MODEL_DEPLOYMENTS,
        "m",
        namespace,
        uid=(await api.get(MODEL_DEPLOYMENTS, "m", namespace))["metadata"]["uid"],
    )
    assert (await kubefoundry("wait", "m", "--for", "deleted", "--timeout", "180")).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("status", "none"), 1, "not found", id="no such model"),
        pytest.param(("wait", "none", "--timeout", "5"), 1, "not found", id="nothing to wait for"),
        pytest.param(("chat", "none", "hello"), 1, "not found", id="nobody to ask"),
        pytest.param(("status",), 0, "No models in namespace", id="an empty namespace"),
    ],
)
async def test_commands_report_a_missing_object(
    kubefoundry: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = await kubefoundry(*arguments)

    assert (done.code, said in done.err) == (code, True), done.err


async def test_curl_says_that_no_endpoint_is_published_yet(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await api.create(
        MODEL_DEPLOYMENTS,
        model_deployment(
            "m", namespace, GPU, provider="kuberay", labels={"kubefoundry.ai/simulator-fail": "loading"}
        ),
        manager="test",
    )
    await until_deployment(api, "m", namespace, lambda obj: bool(obj.get("status", {}).get("phase")))

    done = await kubefoundry("curl", "m")

    assert (done.code, "has no endpoint yet" in done.err) == (1, True), done.err


async def test_logs_of_a_role_are_those_of_its_pods(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    type_, sub = "nvidia.com/dynamo-component-type", "nvidia.com/dynamo-sub-component-type"
    for name, labels in (
        ("front", {type_: "frontend"}),
        ("one", {type_: "worker", sub: "decode"}),
        ("two", {type_: "worker", sub: "prefill"}),
    ):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"nvidia.com/dynamo-graph-deployment-name": "m", **labels},
            },
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        }
        await api.create(PODS, pod, manager="test")

    # None is scheduled, so what is said is about those that were asked.
    for role, asked in (("decode", {"one"}), ("worker", {"one", "two"}), ("frontend", {"front"})):
        done = await kubefoundry("logs", "m", "--role", role)
        found = {name for name in ("front", "one", "two") if f"{name}/main: not scheduled yet" in done.err}
        assert (done.code, found) == (1, asked), done.err
    wrong = await kubefoundry("logs", "m", "--role", "decod")

    assert wrong.code == 1
    assert "no pod has the role 'decod': they are decode, frontend, prefill, worker" in wrong.err


async def test_doctor_finds_failures(kubefoundry: CommandLine, api: Client, namespace: str) -> None:
    await api.create(
        MODEL_DEPLOYMENTS,
        model_deployment(
            "m",
            namespace,
            {**GPU, "engine": {"type": "sglang"}, "secrets": {"huggingFaceToken": "hf-token"}},
            provider="kaito",
        ),
        manager="test",
    )
    await until_deployment(api, "m", namespace, lambda obj: obj.get("status", {}).get("phase") == "Failed")

    done = await kubefoundry("doctor", "-o", "json")
    reader = await kubefoundry("doctor", "-o", "json", "--as", "ann")

    found: list[dict[str, Any]] = json.loads(done.out)
    assert done.code == 1
    assert [one["state"] for one in found if one["text"].startswith("provider dynamo is ready")] == ["good"]
    assert any(
        one["state"] == "wrong" and f"model {namespace}/m is refused: " in one["text"] for one in found
    )
    assert [one["text"].split(";")[0] for one in found if "hf-token" in one["text"]] == [
        f"Secret {namespace}/hf-token does not exist, and m needs it"
    ]
    assert [one["state"] for one in found if "WebhookConfiguration: " in one["text"]] == ["good"] * 3
    # each part that may not be looked at names what is missing, and the others are shown
    unseen = [one["text"] for one in json.loads(reader.out) if one["state"] == "unknown"]
    for resource in ("modeldeployments", "leases", "deployments", "events", "mutatingwebhookconfigurations"):
        assert any(
            f'cannot {verb} resource "{resource}"' in text for text in unseen for verb in ("list", "get")
        )


async def test_impersonation_has_the_rights_of_user_and_groups(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await api.create(
        Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"), body, manager="test"
    )

    stranger = await kubefoundry("status", "--as", "ann")
    reader = await kubefoundry("status", "--as", "ann", "--as-group", "others", "--as-group", "readers")
    nobody = await kubefoundry("status", "--as-group", "readers")

    assert (stranger.code, 'User "ann" cannot list' in stranger.err) == (5, True), stranger
    assert (reader.code, "No models in namespace" in reader.err) == (0, True), reader
    assert (nobody.code, "--as-group needs --as" in nobody.err) == (2, True)


async def test_kubeconfig_user_is_impersonated(
    kubefoundry: CommandLine, suite: Suite, namespace: str, tmp_path: Path
) -> None:
    content = yaml.safe_load(suite.plane.kubeconfig.read_text())
    content["users"][0]["user"].update({"as": "alice", "as-groups": ["devs"]})
    file = tmp_path / "as-alice"
    file.write_text(yaml.safe_dump(content))

    answers = [
        await kubefoundry(*command, "--kubeconfig", str(file))
        for command in (["status"], ["deploy", "Qwen/Qwen3-0.6B", "--yes"])
    ]

    assert [(answer.code, 'User "alice" cannot' in answer.err) for answer in answers] == [(5, True)] * 2
    assert "No models in namespace" in (await kubefoundry("status")).err


async def test_wait_ends_at_a_model_that_is_scaled_to_zero(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    assert (await kubefoundry("scale", "m", "0")).code == 0

    done = await kubefoundry("wait", "m", "--timeout", "180")

    assert (done.code, "is scaled to zero" in done.err) == (1, True), done


@pytest.mark.needs_kubernetes("1.29", "filters in kubectl wait --for=jsonpath")
async def test_kubectl_can_wait_for_scaling_to_zero(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    """The way for other tools (contract §3)."""
    await running(api, namespace, GPU, "dynamo")
    assert (await kubefoundry("scale", "m", "0")).code == 0

    reason = '--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=ScaledToZero'
    waited = suite.plane.kubectl("wait", "md/m", "-n", namespace, reason, "--timeout=180s")

    assert "condition met" in waited.stdout


async def test_watched_list_has_a_line_for_each_change(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    async with kubefoundry.lines("status", "--watch") as lines:
        created = model_deployment("m", namespace, GPU, provider="kuberay")
        await api.create(MODEL_DEPLOYMENTS, created, manager="test")
        seen = [(await anext(lines)).split()]
        while seen[-1][1] != "Running":
            seen.append((await anext(lines)).split())
        await api.delete(
            MODEL_DEPLOYMENTS,
            "m",
            namespace,
            uid=(await api.get(MODEL_DEPLOYMENTS, "m", namespace))["metadata"]["uid"],
        )
        while seen[-1][1] != "Deleted":
            seen.append((await anext(lines)).split())

    assert seen[0][:4] == ["NAME", "PHASE", "READY", "STATE"]
    assert {row[0] for row in seen[1:]} == {"m"}
    assert len({tuple(row[:6]) for row in seen}) == len(seen)


async def test_bundle_holds_no_secret(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    secret = "S3cr3t-value-0815"
    spec = {
        **GPU,
        "engine": {"type": "vllm", "args": {"api-key": secret}},
        "env": [{"name": "TOKEN", "value": secret}],
    }
    body = model_deployment(
        "m",
        namespace,
        spec,
        provider="kuberay",
        annotations={"example.com/url": f"https://u:{secret}@example.com"},
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: bool(obj.get("status", {}).get("phase")))
    file = tmp_path / "bundle.tar.gz"

    done = await kubefoundry("doctor", "--bundle", str(file), "-o", "json")
    stranger = await kubefoundry("doctor", "--bundle", "/nonexistent/x")

    assert file.exists(), done.err
    with tarfile.open(file) as archive:
        content = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
    assert {
        "kubefoundry/doctor.json",
        "kubefoundry/models.json",
        "kubefoundry/versions.json",
    } <= content.keys()
    assert json.loads(content["kubefoundry/models.json"])[0]["spec"]["model"]["id"] == "org/model"
    assert [name for name, data in content.items() if secret.encode() in data] == []
    assert (stranger.code, "cannot write /nonexistent/x" in stranger.err) == (2, True), stranger


async def test_bundle_has_helpers_of_models_without_values(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    secret = "S3cr3t-value-0815"
    engine = {**GPU["engine"], "args": {"chat-template": secret}}
    await running(api, namespace, {**GPU, "engine": engine}, "kaito")
    file = tmp_path / "bundle.tar.gz"

    await kubefoundry("doctor", "--bundle", str(file))

    with tarfile.open(file) as archive:
        content = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
    [config] = json.loads(content["kubefoundry/upstream/configmaps.json"])
    [workspace] = json.loads(content["kubefoundry/upstream/workspaces.json"])
    assert (workspace["metadata"]["name"], config["metadata"]["name"].startswith("m-")) == ("m", True)
    assert config["data"] == {"inference_config.yaml": REMOVED}
    assert [name for name, data in content.items() if secret.encode() in data] == []


async def test_compat_tries_an_upstream_upgrade_on_running_models(
    kubefoundry: CommandLine, api: Client, namespace: str, tmp_path: Path
) -> None:
    await running(api, namespace, GPU, "kuberay")
    crd = standin("kuberay").document
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(yaml.safe_dump(crd))
    changed = copy.deepcopy(crd)
    for version in changed["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["serveConfigV2"]
    other.write_text(yaml.safe_dump(changed))

    goes_on = await kubefoundry("compat", "kuberay", "--crd", str(same))
    frozen = await kubefoundry("compat", "--crd", str(other), "-o", "json")

    assert (goes_on.code, f"{namespace}/m" in goes_on.out, "untouched" in goes_on.out) == (0, True, True), (
        goes_on
    )
    assert frozen.code == 1, frozen
    [model] = json.loads(frozen.out)["models"]
    assert (model["fate"], model["lost"]) == ("frozen", ["spec.serveConfigV2"])


async def test_edit_is_stopped_by_another_edit_but_not_by_a_status(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, GPU, provider="kuberay")
    before = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: bool(obj.get("status")))
    session = Session(api, namespace)

    paused = await write(session, before, annotation(before, names.PAUSED_ANNOTATION, "true"), "pause it")
    with pytest.raises(Failure) as refused:
        await write(session, before, annotation(before, names.REFRESH_ANNOTATION, "1"), "refresh it")

    assert paused["metadata"]["annotations"][names.PAUSED_ANNOTATION] == "true"
    assert refused.value.exit_code == Exit.CHANGED


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        pytest.param("explain", ("m",), id="explain"),
        pytest.param("plan", ("m", "--set", "engine.contextLength=4096"), id="plan"),
        pytest.param("compat", ("kuberay", "--crd", str(STANDINS / "kuberay.yaml")), id="compat"),
        pytest.param("doctor", (), id="doctor"),
        pytest.param("doctor", ("m",), id="doctor of a model"),
        pytest.param("version", (), id="version"),
    ],
)
async def test_json_output_fits_its_documentation(
    kubefoundry: CommandLine, api: Client, namespace: str, command: str, arguments: tuple[str, ...]
) -> None:
    await running(api, namespace, GPU, "kuberay")

    done = await kubefoundry(command, *arguments, "-o", "json")

    assert done.code in (0, 1), done
    assert checked(command, done.out)


@pytest.mark.parametrize("command", ["status", "provider list", "controller status"])
async def test_every_list_has_every_form(
    kubefoundry: CommandLine, api: Client, namespace: str, command: str
) -> None:
    await running(api, namespace, GPU, "kuberay")

    table, wide, names, text = [
        await kubefoundry(command, "-o", form) for form in ("table", "wide", "name", "json")
    ]

    assert [done.code for done in (table, wide, names, text)] == [0] * 4, (table, wide, names, text)
    assert wide.out.split("\n")[0].startswith(table.out.split("\n")[0].rstrip())
    found = [one["metadata"]["name"] for one in json.loads(text.out)["items"]]
    assert [line.rpartition("/")[2] for line in names.out.split()] == found
