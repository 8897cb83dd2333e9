"""The page in a real Chromium, against a real API server on which nothing else runs: the tests write the statuses.

Each test prints the figure that it saw (`pytest -s`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, expect

from browser.page_server import Tab, page_in_cluster, page_server, tab
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.namespaces import new_namespace
from support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> {{ 7 * 7 }} \u202egnp.exe"


BUSY = 5.0
"""Seconds for what takes less than one on an idle machine: four processes share two cores in a whole run."""


async def create(api: Client, namespace: str, name: str, **status: Any) -> Object:
    """A model, with that status."""
    made = await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU), manager="test")
    return await report(api, made, **status) if status else made


async def report(api: Client, obj: Object, **status: Any) -> Object:
    """Writes the status, as a provider would."""
    meta = obj["metadata"]
    operations = [{"op": "add", "path": "/status", "value": status}]
    return await api.json_patch(
        MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], operations, manager="test", subresource="/status"
    )


async def live(page: Page) -> None:
    """The page's watch is open."""
    await expect(page.locator("#link")).to_be_visible()


def conditions(*messages: str) -> list[dict[str, Any]]:
    names = ("Validated", "Ready")
    return [
        {
            "type": names[index],
            "status": "True",
            "reason": "ValidationPassed",
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
        for index, message in enumerate(messages)
    ]


@pytest_asyncio.fixture(loop_scope="module")
async def provider(api: Client) -> str:
    """A registered provider without a package, for verdicts."""
    name = "elsewhere"
    config = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": name},
        "spec": {
            "capabilities": {"engines": ["vllm"], "servingModes": ["aggregated"], "gpuSupport": True},
            "selectionRules": [{"condition": "spec.engine.type == 'vllm'", "priority": 1, "reason": "vLLM"}],
        },
    }
    await api.apply(PROVIDER_CONFIGS, config, manager="test")
    status = {key: config[key] for key in ("apiVersion", "kind", "metadata")}
    await api.apply_status(
        PROVIDER_CONFIGS,
        {**status, "status": {"ready": True, "lastHeartbeat": "2999-01-01T00:00:00Z"}},
        manager="test",
    )
    return name


async def test_status_write_is_on_the_page_within_a_second(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    obj = await create(api, namespace, "m")
    took = {}
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        for path in (f"/?namespace={namespace}", f"/models/{namespace}/m"):
            await seen.page.goto(server.base + path)
            await live(seen.page)
            times = []
            # A stalled disk delays one of them. A page that polls would delay them all.
            for number in range(3):
                began = time.monotonic()

                await report(api, obj, phase="Deploying", message=f"{number} written for {path}")

                await seen.page.get_by_text(f"{number} written for {path}").first.wait_for()
                times.append(time.monotonic() - began)
            took[path.split("/")[1][:6]] = min(times)
        assert seen.wrong == []
    print(f"from the write to the page: {took}")
    assert max(took.values()) < BUSY


async def test_page_lists_new_models_without_a_reload(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    await create(api, namespace, "b")
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        await seen.page.goto(f"{server.base}/?namespace={namespace}")
        await live(seen.page)
        names = seen.page.locator("#rows .name")

        made = await create(api, namespace, "a")
        await expect(names).to_have_text(["a", "b"])
        await expect(seen.page.locator("[data-count='']")).to_have_text("2")

        await api.delete(MODEL_DEPLOYMENTS, "a", namespace, uid=made["metadata"]["uid"])
        await expect(names).to_have_text(["b"])


async def test_page_reports_a_killed_server_and_recovers(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    await create(api, namespace, "before")
    async with tab(browser) as seen:
        async with page_server(cluster, namespace) as server:
            await seen.sign_in(server)
            await seen.page.goto(f"{server.base}/?namespace={namespace}")
            await live(seen.page)
            await server.kill()
            await expect(seen.page.locator("#trouble")).to_contain_text("kubefoundry start")
            await expect(seen.page.get_by_text("before")).to_be_visible()
        async with page_server(cluster, namespace, port=server.port) as again:
            await expect(seen.page.locator("#trouble")).to_contain_text("signed out")
            await create(api, namespace, "meanwhile")
            second = await seen.page.context.new_page()
            await second.goto(again.link)
            # The page signs in with the key of its link, then goes on to its list.
            await second.wait_for_url(f"{again.base}/")
            await second.close()
            began = time.monotonic()
            await seen.page.reload()
            await seen.page.get_by_role("link", name="meanwhile").wait_for()
            await live(seen.page)
            print(f"back after {time.monotonic() - began:.2f} s")


async def test_list_of_a_thousand_models_takes_little_of_the_server(
    cluster: ControlPlane, api: Client, browser: Browser
) -> None:
    namespace = await new_namespace(api)
    for start in range(0, 1000, 50):
        await asyncio.gather(
            *(create(api, namespace, f"m-{number:04}") for number in range(start, start + 50))
        )
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        await seen.page.goto(f"{server.base}/providers")
        began, before = time.monotonic(), server.cpu()

        await seen.page.goto(f"{server.base}/?namespace={namespace}", wait_until="commit")
        await seen.page.get_by_role("link", name="m-0999").wait_for(state="attached")

        took, cpu = time.monotonic() - began, server.cpu() - before
        assert await seen.page.locator("#rows tr").count() == 1000
        await seen.page.get_by_label("Search").fill("m-0123")
        await expect(seen.page.locator("#rows tr")).to_have_count(1)
    print(f"1,000 models after {took:.2f} s; the page's server took {cpu:.2f} s of CPU")
    # How long the browser takes for it is up to what else runs here: docs/page.md has the figure.
    assert cpu < 0.5


async def test_two_users_see_only_their_namespaces(
    cluster: ControlPlane, api: Client, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [await new_namespace(api), await new_namespace(api)]
    tokens = []
    for number, name in enumerate(names):
        await create(api, name, f"of-{number}")
        cluster.kubectl("create", "serviceaccount", "viewer", "-n", name)
        cluster.kubectl(
            "create",
            "rolebinding",
            "viewer",
            "-n",
            name,
            "--clusterrole=kubefoundry-view",
            f"--serviceaccount={name}:viewer",
        )
        tokens.append(cluster.kubectl("create", "token", "viewer", "-n", name).stdout.strip())
    folder = tmp_path_factory.mktemp("page")
    environment = Suite(cluster, folder)._in_cluster("default", folder)
    # what the Deployment mounts: the CA and no token
    (folder / "token").unlink()
    async with page_in_cluster(environment, "--allow-writes") as base:
        for number, token in enumerate(tokens):
            own, other = names[number], names[1 - number]
            async with tab(browser) as seen:
                await seen.page.goto(base)
                await seen.page.get_by_label("Token").fill(token)
                await seen.page.get_by_role("button", name="Sign in").click()
                await seen.page.get_by_role("link", name=f"of-{number}").wait_for()
                assert await seen.page.locator("#rows .name").all_inner_texts() == [f"of-{number}"]
                answer = await seen.page.goto(f"{base}/?namespace={other}")
                assert answer and answer.status == 403
                answer = await seen.page.goto(f"{base}/models/{other}/of-{1 - number}")
                assert answer and answer.status == 403
                await expect(seen.page.get_by_text("cannot get resource")).to_be_visible()
                # may look and may not act
                await seen.page.goto(f"{base}/models/{own}/of-{number}")
                assert await seen.page.get_by_role("button", name="Delete").is_disabled()
                [cookie] = await seen.page.context.cookies()
                assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
                assert token not in str(await seen.page.context.storage_state())
                assert seen.wrong == []


async def test_model_is_created_with_the_keyboard_alone(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser, provider: str
) -> None:
    async with page_server(cluster, namespace, "--allow-writes") as server, tab(browser, server) as seen:
        keys = seen.page.keyboard
        await seen.page.goto(f"{server.base}/?namespace={namespace}")
        strokes = await reach(seen, "Create a model")
        await keys.press("Enter")
        await seen.page.wait_for_url("**/create")
        strokes += await reach(seen, "model.id")
        await keys.type("org/small-model")
        strokes += await reach(seen, "engine.type")
        await keys.type("vllm")
        strokes += await reach(seen, "resources.gpu.count")
        await keys.type("1")
        await expect(seen.page.locator("#verdict")).to_contain_text(provider)
        await expect(seen.page.locator("#yaml")).to_have_value(YAML.format(namespace=namespace).rstrip())
        strokes += await reach(seen, "Create")

        await keys.press("Enter")

        await seen.page.wait_for_url(f"**/models/{namespace}/small-model")
        assert seen.wrong == []
    stored = await api.get(MODEL_DEPLOYMENTS, "small-model", namespace)
    assert (stored["spec"]["model"]["id"], stored["spec"]["resources"]["gpu"]["count"]) == (
        "org/small-model",
        1,
    )
    print(f"{strokes} times Tab")


YAML = """\
apiVersion: kubefoundry.ai/v1beta1
kind: ModelDeployment
metadata:
  name: small-model
  namespace: {namespace}
spec:
  model:
    id: org/small-model
  engine:
    type: vllm
  resources:
    gpu:
      count: 1
"""


async def reach(seen: Tab, wanted: str) -> int:
    """Presses Tab until what has that name has the focus."""
    for count in range(1, 60):
        await seen.page.keyboard.press("Tab")
        named = await seen.page.evaluate(
            "() => [document.activeElement.labels?.[0]?.firstChild.textContent, document.activeElement.textContent]"
            ".map((text) => (text || '').trim())"
        )
        if wanted in named:
            return count
    raise AssertionError(f"no way to {wanted} by Tab")


async def test_form_follows_the_yaml(
    cluster: ControlPlane, namespace: str, browser: Browser, provider: str
) -> None:
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        await seen.page.goto(f"{server.base}/create")
        await seen.page.locator("#yaml").fill(
            YAML.format(namespace=namespace).replace("count: 1", "count: 4")
        )
        await expect(seen.page.get_by_label("resources.gpu.count")).to_have_value("4")
        await expect(seen.page.locator("#verdict")).to_contain_text(provider)
        await seen.page.locator("#yaml").fill(
            "kind: ModelDeployment\nmetadata: {name: m}\nspec: {engine: {type: x}}"
        )
        await expect(seen.page.locator("#problem")).to_contain_text("spec.engine.type")


async def test_page_actions_follow_rights_and_ask_before_damage(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    await create(api, namespace, "m")
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        await seen.page.goto(f"{server.base}/models/{namespace}/m")
        await expect(seen.page.get_by_text("read-only")).to_be_visible()
        assert await seen.page.get_by_role("button", name="Delete").count() == 0
    async with page_server(cluster, namespace, "--allow-writes") as server, tab(browser, server) as seen:
        await seen.page.goto(f"{server.base}/models/{namespace}/m")
        await seen.page.get_by_label("Replicas").fill("3")
        await seen.page.get_by_role("button", name="Scale").click()
        await until(
            api,
            MODEL_DEPLOYMENTS,
            "m",
            namespace,
            lambda obj: obj and obj["spec"]["scaling"]["replicas"] == 3,
        )
        await seen.page.get_by_role("button", name="Pause").click()
        await seen.page.get_by_role("button", name="Resume").wait_for()
        await seen.page.get_by_role("button", name="Delete").click()
        await expect(seen.page.get_by_role("heading")).to_have_text("Delete m?")
        await seen.page.get_by_role("button", name="Delete").click()
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


async def test_another_site_changes_nothing(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    obj = await create(api, namespace, "m")
    meta = obj["metadata"]
    async with page_server(cluster, namespace, "--allow-writes") as server, tab(browser, server) as seen:
        target = f"{server.base}/models/{namespace}/m/pause"

        async def foreign(_: web.Request) -> web.Response:
            fields = (
                f'<input name=uid value="{meta["uid"]}"><input name=generation value="{meta["generation"]}">'
            )
            text = f'<form method=post action="{target}">{fields}<button>Win a prize</button></form>'
            return web.Response(text=text, content_type="text/html")

        app = web.Application()
        app.router.add_get("/", foreign)
        # another port of this machine: the same site, for which a strict cookie is sent
        async with TestServer(app) as evil:
            await seen.page.goto(f"http://127.0.0.1:{evil.port}/")
            read = await seen.page.evaluate(
                "(url) => fetch(url, {credentials: 'include'}).then((one) => one.text(), () => 'refused')",
                server.base,
            )
            assert read == "refused"
            async with seen.page.expect_navigation() as navigation:
                await seen.page.get_by_role("button").click()
            answer = await navigation.value
            assert answer and answer.status == 403
    stored = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert "annotations" not in stored["metadata"]


async def test_tenant_input_is_shown_as_text(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    obj = await create(api, namespace, "m", phase="Failed", message=HOSTILE, conditions=conditions(HOSTILE))
    async with page_server(cluster, namespace) as server, tab(browser, server) as seen:
        for path in ("/", f"/models/{namespace}/m", f"/models/{namespace}/m/yaml", f"/?q={HOSTILE}"):
            await seen.page.goto(server.base + path)
            await seen.page.locator("h1").wait_for()
            text = await seen.page.locator("body").inner_text()
            assert ("onerror=alert(1)" in text or "q=" in path, "\u202e" in text) == (True, False), path
        await seen.page.goto(f"{server.base}/?namespace={namespace}")
        await live(seen.page)
        await report(api, obj, phase="Failed", message=f"later {HOSTILE}")
        await seen.page.get_by_text("later <img").wait_for()
        assert await seen.page.locator("main img, main script").count() == 0
        assert seen.wrong == []


async def test_everything_is_readable_without_javascript(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser, provider: str
) -> None:
    await create(api, namespace, "m", phase="Deploying", message="pulling", conditions=conditions("fine"))
    async with (
        page_server(cluster, namespace) as server,
        tab(browser, server, java_script_enabled=False) as seen,
    ):
        for path, shown in (
            (f"/?namespace={namespace}", "pulling"),
            (f"/?namespace={namespace}&q=none-such", "No model matches"),
            (f"/models/{namespace}/m", "fine"),
            (f"/models/{namespace}/m/why", provider),
            (f"/models/{namespace}/m/events", "No Events"),
            (f"/models/{namespace}/m/logs", "no provider is selected yet"),
            (f"/models/{namespace}/m/chat", "kubefoundry wait"),
            (f"/models/{namespace}/m/yaml", "org/model"),
            ("/providers", provider),
            ("/doctor", "Kubernetes"),
            ("/create?spec.model.id=org/m&spec.engine.type=vllm&spec.resources.gpu.count=1", provider),
        ):
            await seen.page.goto(server.base + path)
            await expect(seen.page.locator("main")).to_contain_text(shown)
        await seen.page.get_by_label("resources.gpu.count").fill("2")
        await seen.page.get_by_role("button", name="Check the form").click()
        await expect(seen.page.locator("#yaml")).to_have_value(
            YAML.format(namespace=namespace)
            .replace("small-model", "m")
            .replace("count: 1", "count: 2")
            .rstrip()
        )


def pages(namespace: str) -> Iterator[str]:
    yield f"/?namespace={namespace}"
    yield "/providers"
    yield "/create?spec.model.id=org/m&spec.engine.type=vllm&spec.resources.gpu.count=1"
    yield "/doctor"
    yield "/none"
    for name in ("", "/why", "/objects", "/events", "/logs", "/chat", "/yaml"):
        yield f"/models/{namespace}/m{name}"


async def test_axe_zoom_policy_and_weight_of_every_page(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser, provider: str, axe: str
) -> None:
    name = "m"
    message = f"a word of many letters: {'x' * 300}"
    await create(
        api, namespace, name, phase="Failed", message=message, conditions=conditions("fine", message)
    )
    serious: list[str] = []
    wide: list[str] = []
    weights: dict[str, int] = {}
    async with page_server(cluster, namespace, "--allow-writes") as server, tab(browser, server) as seen:
        for path in pages(namespace):
            await seen.page.set_viewport_size({"width": 1280, "height": 900})
            await seen.page.goto(server.base + path, wait_until="load")
            weights[path] = await seen.page.evaluate(
                "['navigation', 'resource'].flatMap((type) => performance.getEntriesByType(type))"
                ".reduce((sum, one) => sum + one.decodedBodySize, 0)"
            )
            for scheme in ("light", "dark"):
                await seen.page.emulate_media(color_scheme=scheme)
                if scheme == "light":
                    await seen.page.evaluate(axe)
                found = await seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
                serious += [
                    f"{path} {scheme}: {one['id']}: {one['nodes'][0]['html']}"
                    for one in found["violations"]
                    if one["impact"] in ("serious", "critical")
                ]
            # 400 % of a window that is 1,280 wide
            await seen.page.set_viewport_size({"width": 320, "height": 256})
            more = await seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if more > 0:
                wide.append(f"{path}: {more} pixels")
        assert seen.wrong == []
    heaviest = max(weights, key=weights.__getitem__)
    print(f"{len(weights)} pages; the heaviest has {weights[heaviest]} bytes: {heaviest}")
    assert serious == []
    assert wide == []
    assert max(weights.values()) < 100_000
