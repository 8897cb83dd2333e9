"""Users with only a RoleBinding to `view` or `edit`: the commands and the page work with their own token."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.document_commands import calls_of, code_lines
from support.edits import running
from support.events import until_event
from support.kinds import UPSTREAM
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).resolve().parents[3]
FIRST_PAGE: Final = ROOT / "docs" / "use.md"

PROVIDERS = pytest.mark.parametrize("provider", UPSTREAM)


async def bound(suite: Suite, namespace: str, role: str, folder: Path) -> Path:
    """Return the kubeconfig of a new account that has that role in the namespace and nothing else."""
    plane = suite.plane
    plane.kubectl("create", "serviceaccount", role, "-n", namespace)
    account = f"--serviceaccount={namespace}:{role}"
    plane.kubectl("create", "rolebinding", role, f"--clusterrole={role}", account, "-n", namespace)
    config = yaml.safe_load(plane.kubeconfig.read_text())
    [user] = config["users"]
    user["user"] = {"token": plane.token(namespace, role)}
    kubeconfig = folder / role
    kubeconfig.write_text(yaml.safe_dump(config))
    for kind in UPSTREAM.values():
        await until_allowed(suite, kubeconfig, "get", kind.crd, namespace)
    return kubeconfig


async def until_allowed(suite: Suite, kubeconfig: Path, verb: str, resource: str, namespace: str) -> None:
    """Wait until the API server knows the binding and has aggregated the roles."""
    question = ["auth", "can-i", verb, resource, "-n", namespace, "--kubeconfig", str(kubeconfig)]
    async with asyncio.timeout(SECONDS):
        while True:
            if not suite.plane.kubectl(*question, check=False).returncode:
                return
            await asyncio.sleep(PROBE)


@PROVIDERS
@pytest.mark.parametrize("role", ["view", "edit"])
async def test_namespace_role_can_explain_plan_and_read(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, role: str, provider: str
) -> None:
    await ready(api, namespace, provider)
    kubefoundry = CommandLine(await bound(suite, namespace, role, tmp_path), namespace)

    for command in (
        ["status"],
        ["status", "m"],
        ["explain", "m"],
        ["plan", "m", "--set", "engine.contextLength=4096"],
        ["provider list"],
    ):
        done = await kubefoundry(*command)
        assert done.code in (0, 1), (command, done)
        assert "forbidden" not in (done.out + done.err).lower(), (command, done)
    # No pod runs here; the upstream object, which names the pods, was read.
    logs = await kubefoundry("logs", "m")
    assert "forbidden" not in (logs.out + logs.err).lower()


@PROVIDERS
async def test_edit_role_can_eject_and_import(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, provider: str
) -> None:
    await ready(api, namespace, provider)
    before = await api.get(UPSTREAM[provider], "m", namespace)
    kubefoundry = CommandLine(await bound(suite, namespace, "edit", tmp_path), namespace)

    done = await kubefoundry("eject", "m", "--yes")

    assert done.code == 0, done
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    after = await api.get(UPSTREAM[provider], "m", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert not after["metadata"].get("ownerReferences")

    done = await kubefoundry("import", f"{UPSTREAM[provider].kind}/m", "--yes")

    assert done.code == 0, done
    adopted = await api.get(UPSTREAM[provider], "m", namespace)
    [owner] = adopted["metadata"]["ownerReferences"]
    assert (adopted["metadata"]["uid"], owner["kind"]) == (before["metadata"]["uid"], "ModelDeployment")


async def test_first_page_works_with_the_edit_role(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """Each kubectl command of docs/use.md, in its order. No engine of its model is simulated, so another runs."""
    kubeconfig = await bound(suite, namespace, "edit", tmp_path)
    model = yaml.safe_dump(model_deployment("qwen-small", namespace, GPU, provider="kuberay"))
    (tmp_path / "model.yaml").write_text(model)
    commands = [call for line in code_lines(FIRST_PAGE) for call in calls_of(line, "kubectl")]

    done = []
    for command in commands:
        words = [str(tmp_path / word) if word == "model.yaml" else word for word in command]
        who = ["--kubeconfig", str(kubeconfig), "--namespace", namespace]
        done.append(await asyncio.to_thread(suite.plane.kubectl, *words, *who, check=False))

    failed = [
        (command, result.stderr) for command, result in zip(commands, done, strict=True) if result.returncode
    ]
    assert failed == []
    await until(api, MODEL_DEPLOYMENTS, "qwen-small", namespace, lambda obj: obj is None)


def test_first_page_has_the_model_of_the_quickstart() -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", FIRST_PAGE.read_text(), re.S)

    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "examples/quickstart/qwen-small.yaml").read_text())


async def test_import_names_permission_that_an_owner_needs(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """The role of an earlier release cannot update `modeldeployments/finalizers`."""
    plane, user = suite.plane, f"nora-{namespace}"
    rules = [
        {"apiGroups": ["kubefoundry.ai"], "resources": ["modeldeployments"], "verbs": ["*"]},
        {"apiGroups": ["ray.io"], "resources": ["rayservices"], "verbs": ["*"]},
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r"},
        "rules": rules,
    }
    (path := tmp_path / "role.yaml").write_text(yaml.safe_dump(role))
    plane.kubectl("apply", "-n", namespace, "-f", str(path))
    plane.kubectl("create", "rolebinding", "r", "--role=r", f"--user={user}", "-n", namespace)
    await ready(api, namespace, "kuberay")
    assert (await CommandLine(plane.kubeconfig, namespace)("eject", "m", "--yes")).code == 0
    kubefoundry = CommandLine(plane.kubeconfig, namespace)

    done = await kubefoundry("import", "rayservice/m", "--yes", "--as", user)

    assert done.code == 5, done
    assert "you may not update modeldeployments/finalizers" in done.err
    grant = f"kubectl -n {namespace} create rolebinding {user}-edit --clusterrole=edit --user={user}"
    assert grant in done.err


async def test_errors_of_the_view_role_name_a_remedy(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await ready(api, namespace, "dynamo")
    kubefoundry = CommandLine(await bound(suite, namespace, "view", tmp_path), namespace)

    tried = await kubefoundry("plan", "m", "--set", "engine.contextLength=4096", "--server")
    missing = await kubefoundry("status", "nosuch")
    hint = missing.err.partition("; ")[2].removesuffix(" lists those of the namespace\n")
    listed = await kubefoundry(*shlex.split(hint)[1:])

    account = f"--clusterrole=edit --serviceaccount={namespace}:view"
    assert (tried.code, account in tried.err) == (5, True), tried
    assert hint.startswith(f"kubefoundry status -n {namespace} ")
    assert (listed.code, listed.out.splitlines()[1].split()[0]) == (0, "m"), listed


async def test_doctor_needs_core_events_only(suite: Suite, api: Client, namespace: str) -> None:
    """`view` and `edit` of Kubernetes 1.26 grant no Events of events.k8s.io."""
    plane, user = suite.plane, f"--user=nora-{namespace}"
    resources = "--resource=modeldeployments.kubefoundry.ai,events"
    plane.kubectl("create", "role", "reader", "--verb=get,list", resources, "-n", namespace)
    plane.kubectl("create", "rolebinding", "reader", "--role=reader", user, "-n", namespace)
    await ready(api, namespace, "kuberay")
    edit = [
        {
            "op": "replace",
            "path": "/spec/rayClusterConfig/headGroupSpec/rayStartParams/num-cpus",
            "value": "7",
        }
    ]
    await api.json_patch(UPSTREAM["kuberay"], "m", namespace, edit, manager="kubectl-edit")
    note = await until_event(api, namespace, "DriftDetected")

    kubefoundry = CommandLine(plane.kubeconfig, namespace)
    async with asyncio.timeout(SECONDS):
        # the API server learns of the role a moment after it is stored
        while True:
            done = await kubefoundry("doctor", "m", "--as", f"nora-{namespace}")
            if done.code != 5:
                break
            await asyncio.sleep(PROBE)

    assert f"model {namespace}/m: {note}" in done.out, done


@pytest.mark.parametrize("path", ["m", "m/why", "m/objects", "providers"])
async def test_view_role_sees_every_page(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, path: str
) -> None:
    await ready(api, namespace, "dynamo")
    kubefoundry = CommandLine(await bound(suite, namespace, "view", tmp_path), namespace)

    async with (
        kubefoundry.lines("start", "--port", "0") as lines,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
    ):
        link = (await anext(lines)).strip()
        base = link.split("/?")[0]
        async with browser.get(link) as answer:
            assert answer.status == 200
        url = f"{base}/{path}" if path == "providers" else f"{base}/models/{namespace}/{path}"
        async with browser.get(url) as answer:
            text = await answer.text()

    assert answer.status == 200, text
    assert "forbidden" not in text.lower()


async def test_remedy_grants_the_models_of_all_namespaces(suite: Suite, api: Client, namespace: str) -> None:
    await ready(api, namespace, "kuberay")
    kubefoundry, user = CommandLine(suite.plane.kubeconfig, namespace), f"nora-{namespace}"

    refused = await kubefoundry("status", "-A", "--as", user)
    assert refused.code == 5, refused
    remedy = refused.err.strip().split("ask an administrator: ")[1]
    suite.plane.kubectl(*shlex.split(remedy)[1:])
    async with asyncio.timeout(SECONDS):
        while True:
            done = await kubefoundry("status", "-A", "--as", user)
            if done.code != 5:
                break
            await asyncio.sleep(PROBE)

    assert done.code == 0, (remedy, done)
    suite.plane.kubectl("delete", "clusterrolebinding", f"{user}-kubefoundry-view")


async def ready(api: Client, namespace: str, provider: str) -> None:
    """Wait until the model `m` has an upstream object."""
    await running(api, namespace, GPU, provider)
