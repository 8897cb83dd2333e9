"""Each command and page works with the token of each role, or names the permission and the role that is missing."""

from __future__ import annotations

import asyncio
import html
import re
import shlex
import uuid
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import click
import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, web
from aiohttp.test_utils import TestServer

from kubefoundry_cli.main import kubefoundry as program
from kubefoundry_cli.permission import ADMINISTRATOR
from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.names import PAUSED_ANNOTATION
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine, Done
from support.deployments import GPU
from support.edits import running
from support.upstream import STANDINS
from support.users import new_user, until_permitted, user_name
from support.waiting import SECONDS

pytestmark = pytest.mark.integration

ROLES: Final = ("none", "view", "edit", "admin")
"""What a RoleBinding in the namespace grants. Each role has the permissions of those before it."""

COMMANDS: Final = {
    "provider list": "none",
    "version": "none",
    "status": "view",
    "status m": "view",
    "wait m": "view",
    "logs m": "view",
    "explain m": "view",
    "plan m --set engine.contextLength=4096": "view",
    f"compat kuberay --crd {STANDINS / 'kuberay.yaml'}": "view",
    "doctor": "view",
    "doctor m": "view",
    "plan m --set engine.contextLength=4096 --server": "edit",
    "deploy org/other other --gpus 1 --yes": "edit",
    "scale m 2": "edit",
    "pause m": "edit",
    "resume paused": "edit",
    "reselect m --yes": "edit",
    "refresh m --yes": "edit",
    "chat m Hello": "edit",
    "curl m": "edit",
    "eject m --yes": "edit",
    "import rayservice/ejected --yes": "edit",
}
"""The role that each command needs, in an order in which each leaves the following ones their objects."""

FAILING: Final = {"logs m", "chat m Hello", "curl m", "doctor"}
"""Commands that exit with 1 once they have the permissions: no pods run here, and `doctor` finds the paused model."""

OF_EVERYBODY: Final = {"/providers", "/create"}
"""Pages that need no role. The others need `view`."""

OF_ADMINISTRATORS: Final = (
    "controller install --yes",
    "controller upgrade --yes",
    "controller migrate --to v1alpha1 --yes",
    "controller status",
    "controller uninstall --yes",
    "provider install kaito --yes",
    "provider upgrade kaito --yes",
    "provider uninstall kaito --yes",
)
"""Commands that no role of a namespace permits."""

ELSEWHERE: Final = {"render", "images", "completion", "provider manifest", "provider new", "start"}
"""Commands that ask no cluster, and `start`, which serves the pages below."""


def test_tables_have_every_command() -> None:
    lines = {*COMMANDS, *OF_ADMINISTRATORS}

    assert [line for line in lines if not any(is_run(line, command) for command in commands(program))] == []
    assert {
        command for command in commands(program) if not any(is_run(line, command) for line in lines)
    } == ELSEWHERE


@pytest.mark.parametrize("role", ROLES)
async def test_command_works_or_names_the_role(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, role: str
) -> None:
    await prepare(suite, api, namespace)
    kubefoundry, name = new_account(suite, namespace, role, tmp_path)
    for line, needed in COMMANDS.items():
        done = await kubefoundry(*words(line))
        if ROLES.index(role) < ROLES.index(needed):
            assert done.code == 5, (line, done)
            remedy = missing(done.out + done.err, needed, f"{namespace}:{name}")
            done = await repeated(suite, kubefoundry, line, remedy)
            kubefoundry, name = new_account(suite, namespace, role, tmp_path)
        assert refusals(done.out + done.err) == [], (line, done)
        assert done.code == (1 if line in FAILING else 0), (line, done)


@pytest.mark.parametrize("role", ROLES)
async def test_administrators_command_is_refused(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, role: str
) -> None:
    kubefoundry, name = new_account(suite, namespace, role, tmp_path)
    for line in OF_ADMINISTRATORS:
        done = await kubefoundry(*words(line))

        assert done.code == 5, (line, done)
        user = re.escape(user_name(namespace, name))
        assert re.search(rf'User "{user}" cannot [a-z]+ resource "[a-z/]+"', done.err), (line, done)
        assert re.search("ask an administrator of the cluster (for this permission|to run)", done.err), (
            line,
            done,
        )


@pytest.mark.parametrize("role", ROLES)
async def test_page_works_or_names_the_role(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, role: str
) -> None:
    model = await running(api, namespace, GPU, "kuberay")
    kubeconfig, name = new_kubeconfig(suite, namespace, role, tmp_path)
    access = Local(credentials.from_kubeconfig(str(kubeconfig)), namespace, 1)
    application = make(access, writes=True)
    of_model = f"/models/{namespace}/m"
    seen = {"uid": model["metadata"]["uid"], "generation": str(model["metadata"]["generation"])}
    forms = {f"{of_model}/pause": {**seen, "sure": "yes"}, f"{of_model}/chat": {"question": "?"}}

    async with TestServer(application) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        base = f"http://127.0.0.1:{server.port}"
        await (await browser.get(f"{base}/?code={access.code}")).release()
        shown = {path: await text(browser.get(base + path)) for path in pages(application, namespace)}
        [csrf] = re.findall(r'name="csrf" content="([^"]+)"', shown["/providers"])
        # an account that may not read the model sees no form
        sent = {} if role == "none" else {at: {"csrf": csrf, **form} for at, form in forms.items()}
        headers = {"Origin": base}
        answers = [await text(browser.post(base + at, data=sent[at], headers=headers)) for at in sent]

    for path, page in shown.items():
        if role == "none" and path not in OF_EVERYBODY:
            missing(page, "view", f"{namespace}:{name}")
        else:
            assert refusals(page) == [], path
    for answer in answers:
        if role == "view":
            missing(answer, "edit", f"{namespace}:{name}")
        else:
            assert refusals(answer) == []
    annotations = (await api.get(MODEL_DEPLOYMENTS, "m", namespace))["metadata"].get("annotations", {})
    assert (PAUSED_ANNOTATION in annotations) == (role in ("edit", "admin"))


def missing(text: str, role: str, account: str) -> str:
    """Assert that the text names a missing permission and this role, and return the command that grants it."""
    found = re.search(r'cannot [a-z]+ resource "[a-z/]+" in .*; ask an administrator: ([^;\n]*)', text)
    assert found, text
    assert f" --clusterrole={role} --serviceaccount={account}" in found[1], text
    return found[1]


def refusals(text: str) -> list[str]:
    """Return the lines about missing permissions, without those that only roles of the whole cluster grant."""
    lines = [line for line in text.splitlines() if "forbidden" in line.lower()]
    return [
        line for line in lines if ADMINISTRATOR not in line and "--clusterrole=kubefoundry-view" not in line
    ]


async def text(response: AbstractAsyncContextManager[ClientResponse]) -> str:
    """Return the text of a page."""
    async with response as answer:
        return html.unescape(await answer.text())


def pages(application: web.Application, namespace: str) -> list[str]:
    """Return the path of each page, for the model `m`, without files and streams."""
    routes = [route.resource for route in application.router.routes() if route.method == "GET"]
    found = {resource.canonical for resource in routes if resource is not None}
    return [
        path.replace("{namespace}/{name}", f"{namespace}/m")
        for path in sorted(found)
        if not path.startswith(("/static", "/live", "/healthz")) and not path.endswith("/follow")
    ]


def commands(group: click.Group, *path: str) -> Iterator[str]:
    """Yield the commands of a group, those of its groups in two words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name))


def words(line: str) -> list[str]:
    """Return the command, in one piece if a group has it, and its arguments."""
    first, *rest = shlex.split(line)
    return [f"{first} {rest[0]}", *rest[1:]] if first in ("controller", "provider") else [first, *rest]


def is_run(line: str, command: str) -> bool:
    """Check whether the line runs the command."""
    return f"{line} ".startswith(f"{command} ")


async def prepare(suite: Suite, api: Client, namespace: str) -> None:
    """Create the models that COMMANDS name: `m` serves, `paused` is paused, and `ejected` has only its RayService."""
    for name in ("m", "paused", "ejected"):
        await running(api, namespace, GPU, "kuberay", name)
    administrator = CommandLine(suite.plane.kubeconfig, namespace)
    for line in ("pause paused", "eject ejected --yes"):
        done = await administrator(*line.split())
        assert done.code == 0, done


def new_kubeconfig(suite: Suite, namespace: str, role: str, folder: Path) -> tuple[Path, str]:
    """Return the kubeconfig and the name of a new account that has the role in the namespace."""
    name = f"user-{uuid.uuid4().hex[:8]}"
    kubeconfig = new_user(suite.plane, namespace, name, folder)
    if role != "none":
        subject = f"--serviceaccount={namespace}:{name}"
        suite.plane.kubectl("create", "rolebinding", name, f"--clusterrole={role}", subject, "-n", namespace)
        until_permitted(suite.plane, user_name(namespace, name), "get", "modeldeployments", namespace)
    return kubeconfig, name


def new_account(suite: Suite, namespace: str, role: str, folder: Path) -> tuple[CommandLine, str]:
    """Return the command line of a new account with the role, and the account's name."""
    kubeconfig, name = new_kubeconfig(suite, namespace, role, folder)
    return CommandLine(kubeconfig, namespace), name


async def repeated(suite: Suite, kubefoundry: CommandLine, line: str, remedy: str) -> Done:
    """Run the remedy as an administrator, and the command again until the API server knows the permission."""
    _, *arguments = shlex.split(remedy)
    suite.plane.kubectl(*arguments)
    async with asyncio.timeout(SECONDS):
        while True:
            done = await kubefoundry(*words(line))
            if done.code != 5:
                return done
            await asyncio.sleep(PROBE)
