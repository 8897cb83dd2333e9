"""Providers that mean no good, on a real llama-stack in real pods: who is named, how still the status holds, and what
of a Secret gets out."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet import chroot
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from llamastack_providers import layout
from pods.images import provider
from pods.llama_stack.chain import Chain
from pods.llama_stack.distributions import entry, stack
from pods.llama_stack.failing import AT_ONCE, Followed
from pods.rig import end_pods
from support.llamastack import condition_of

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

SECRET = f"Tr0ub4dor&3-{uuid.uuid4().hex}"


@dataclass(frozen=True, slots=True)
class Hostile:
    """before, body: Python text in the provider's module, and in get_adapter_impl. code: of the tool's message.
    words: of the condition."""

    code: str
    before: str = ""
    body: str = "..."
    words: tuple[str, ...] = ()


ASLEEP = "import time\ntime.sleep(600)\n"
PRIES = "import base64, os\nkey = os.environ['KEY']\nraise ValueError(key.lower(), base64.b64encode(key.encode()))\n"
CASES = {
    "sleeps": Hostile("TookTooLong", before=ASLEEP, words=("longer than 8 s",)),
    "dies": Hostile("ProbeDied", before="import os\nos._exit(0)\n"),
    "patricide": Hostile(
        "ProbeDied", before="import os\nos.kill(os.getppid(), 9)\nimport time; time.sleep(99)\n"
    ),
    "massacre": Hostile("ProbeDied", before="import os\nos.kill(-1, 9)\n", words=("was ended while",)),
    "pries": Hostile("ImportFailed", before=PRIES, words=("${env.KEY}",)),
    "raises": Hostile(
        "StartFailed",
        body="import os\n    raise RuntimeError('no backend at all', os.environ['KEY'].upper())",
        words=("no backend at all", "${env.KEY}"),
    ),
    "leaves": Hostile("StartFailed", body="import os\n    os._exit(0)", words=("exit code 0",)),
}
MARKS = {
    **dict.fromkeys(("sleeps", "dies", "patricide", "massacre"), ("HP-2",)),
    "raises": ("HP-3", "HP-6"),
    "leaves": ("HP-3",),
    "pries": ("HP-6",),
}


def sources(name: str) -> dict[str, str]:
    """The provider `acme-NAME`, as `init` writes it but for its deeds."""
    case, files = CASES[name], provider.scaffolded("inference", f"acme-{name}")
    package = f"src/acme_{name.replace('-', '_')}"
    files[f"{package}/provider.py"] = case.before + files[f"{package}/provider.py"]
    if case.body != "...":
        files[f"{package}/__init__.py"] = f"async def get_adapter_impl(config, deps):\n    {case.body}\n"
    return files


WATCHED = {"sleeps", "raises"}
"""One whose container runs for long, and one whose server has run; test_failures.py watches one that fails at once.
The others fail in the same steps as one of these."""

SECRETIVE = ("pries", "raises")
KINDS = "llsd,deployments,replicasets,pods,services,configmaps,events,endpointslices"


@pytest.fixture(scope="module")
def hostile(
    suite: Suite, node: Node, examples: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Followed]:
    """All of them, each beside a provider with nothing wrong, until preflight has refused them and those that are
    watched have failed again."""
    work = tmp_path_factory.mktemp("hostile")
    made = {name: sources(name) for name in CASES}
    built = provider.wheels(list(made.values()), work)
    for (name, files), wheel in zip(made.items(), built, strict=True):
        node.add(
            provider.image(
                f"example.com/{name}:1", work / "images" / name, files["lls-provider-spec.yaml"], [wheel]
            )
        )
    namespace = f"hostile-{uuid.uuid4().hex[:8]}"
    kubectl = suite.plane.kubectl
    kubectl("create", "namespace", namespace)
    kubectl("create", "secret", "generic", "keys", f"--from-literal=key={SECRET}", "-n", namespace)
    variable = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}
    crs = []
    for name in CASES:
        providers = {"inference": [entry("good", provider.ECHO), entry(name, f"example.com/{name}:1")]}
        cr = stack(name, namespace, env=[variable], externalProviders=providers, podOverrides=AT_ONCE)
        cr["metadata"]["annotations"] = {"kubefoundry.ai/provider-seconds": "8"}
        crs.append(cr)
    kubectl("create", "-f", "-", input=yaml.safe_dump_all(crs))
    followed = Followed(suite, namespace, dict.fromkeys(CASES, "PreflightFailed"), WATCHED, SECRETIVE, KINDS)
    try:
        asyncio.run(followed.run())
        yield followed
    finally:
        end_pods(suite, namespace)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.accept(*ids)) for name, ids in MARKS.items()]
)
def test_provider_is_named(hostile: Followed, name: str) -> None:
    status = hostile.refusal(name).status

    message = condition_of(status, "ExternalProvidersReady")["message"]
    case = CASES[name]
    for word in (f"Provider: {name}\n", f"Image: example.com/{name}:1", f"Code: {case.code}", *case.words):
        assert word in message, message
    assert status["phase"] == "Failed"


@pytest.mark.accept("HP-6")
@pytest.mark.parametrize("name", SECRETIVE)
def test_secret_is_in_no_object(hostile: Followed, name: str) -> None:
    objects, left = hostile.refusal(name).objects.lower(), hostile.left.lower()
    told = {
        one["reason"]
        for one in json.loads(hostile.left)["items"]
        if one["kind"] == "Event" and one["involvedObject"]["name"] == name
    }

    assert "${env.key}" in objects
    assert "PreflightFailed" in told
    for shown in (SECRET, base64.b64encode(SECRET.encode()).decode(), SECRET[:12]):
        assert shown.lower() not in objects + left


@pytest.mark.accept("HP-5")
def test_status_of_a_crash_loop_stays_the_same(hostile: Followed) -> None:
    assert hostile.unsteady() == {}


@pytest.mark.accept("HP-7")
def test_run_that_was_killed_as_another_user_is_stepped_around(
    chain: Callable[[], Chain], example_images: list[Image]
) -> None:
    """As a kubelet kills it: what pip has made of it is another user's, for nobody else to read or remove."""
    [image, _] = example_images
    pod = chain()
    left = f"{layout.EXTERNAL_PROVIDERS}/.staging-killed/tmp/pip-unpack"
    command = ["sh", "-c", f"umask 077; mkdir -p {left} && touch {left}/half"]
    binds = {layout.EXTERNAL_PROVIDERS: pod.places.at(layout.EXTERNAL_PROVIDERS)}
    killed = chroot.run(replace(image, user=1001), command, binds)
    assert killed.returncode == 0, killed.stderr

    ended = pod.install(replace(image, user=1002), "echo")

    assert ended.code == 0, ended.log
    assert (pod.places.shared / ".staging-killed").exists()
    assert [path.name for path in pod.places.shared.glob(".staging-*")] == [".staging-killed"]
