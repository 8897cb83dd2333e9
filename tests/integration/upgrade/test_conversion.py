"""Core converts between versions with different fields: a test version renames, moves and splits some."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable
from typing import Any, Final

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.api_versions import NEWEST, create_all, stored_in
from support.deployments import CPU, model_deployment
from support.document_commands import document_commands
from support.namespaces import new_namespace
from support.renamed_version import RENAMED, install_core, switch_on
from support.restarts import stopped
from support.waiting import SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.thorough]

DOCUMENT: Final = ROOT / "docs" / "upgrade.md"
MANY: Final = int(os.environ.get("KUBEFOUNDRY_CONVERSION_MODELS", "100"))
"""Models of the test under load. `make test-conversion` takes 1,000, some minutes."""

PLACED: Final = {**CPU, "nodeSelector": {"pool": "a"}, "engine": {"type": "llamacpp", "contextLength": 1024}}
AS_RENAMED: Final = {
    **{name: value for name, value in CPU.items() if name != "model"},
    "model": {"organization": "org", "name": "model-gguf"},
    "engine": {"type": "llamacpp", "maxLength": 1024},
    "placement": {"nodeSelector": {"pool": "a"}},
}
"""PLACED at the test version."""


@pytest.fixture
def converting(fresh: Suite) -> Suite:
    """A suite whose core converts, once the API server uses it."""
    core = install_core(fresh)
    core.start()
    core.wait_ready()
    switch_on(fresh)
    return fresh


async def until_converted(api: Client, namespace: str, kind: Kind = RENAMED) -> None:
    """Create a model, and wait until it can be read at this version."""
    await api.create(MODEL_DEPLOYMENTS, model_deployment("first", namespace, CPU), manager="test")
    await until_readable(api, kind, "first", namespace)


async def until_readable(api: Client, kind: Kind, name: str, namespace: str) -> None:
    """Wait for the API server, which learns of changed CRDs by a watch."""
    async with asyncio.timeout(SECONDS):
        while True:
            if not await refusal(api.get(kind, name, namespace)):
                return
            await asyncio.sleep(PROBE)


async def read(api: Client, kind: Kind, namespace: str) -> dict[str, Object]:
    """Return all models by name, without their resource versions.

    The API server answers 504 while its cache of the version is behind: each change in it needs a conversion.
    """
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                objects, _ = await api.list(kind, namespace)
                break
            except ApiError as error:
                assert error.code == 504, error
    for obj in objects:
        del obj["metadata"]["resourceVersion"]
    return {obj["metadata"]["name"]: obj for obj in objects}


async def store(api: Client, version: str) -> None:
    """Store new objects in this version."""
    crd = await api.get(CRDS, MODEL_DEPLOYMENTS.crd)
    flags = [
        {"op": "replace", "path": f"/spec/versions/{index}/storage", "value": each["name"] == version}
        for index, each in enumerate(crd["spec"]["versions"])
    ]
    await api.json_patch(CRDS, MODEL_DEPLOYMENTS.crd, None, flags, manager="test")


def apply(suite: Suite, kind: Kind, name: str, namespace: str, spec: Any, manager: str = "kubectl") -> str:
    """Apply a model at this version by kubectl, and return its error, empty if there is none."""
    body = {**model_deployment(name, namespace, spec), "apiVersion": kind.api_version}
    command = ["apply", "--server-side", f"--field-manager={manager}", "-f", "-"]
    done = suite.plane.kubectl(*command, input=json.dumps(body), check=False)
    return done.stderr if done.returncode else ""


async def test_object_has_the_fields_of_each_version(converting: Suite, api: Client) -> None:
    namespace = await new_namespace(api)
    await until_converted(api, namespace)

    await api.create(MODEL_DEPLOYMENTS, model_deployment("old", namespace, PLACED), manager="test")
    body = {**model_deployment("new", namespace, AS_RENAMED), "apiVersion": RENAMED.api_version}
    await api.create(RENAMED, body, manager="test")

    for name in ("old", "new"):
        old, newest, renamed = await at_each_version(api, name, namespace)
        assert {**old, "apiVersion": NEWEST.api_version} == newest
        assert changed(PLACED, old["spec"]) == set()
        assert changed(AS_RENAMED, renamed["spec"]) == set()
        assert old["metadata"] == renamed["metadata"]


async def at_each_version(api: Client, name: str, namespace: str) -> list[Object]:
    """Return a model at each version. All are of one resource version, because core may write between two reads."""
    async with asyncio.timeout(SECONDS):
        while True:
            objects = [await api.get(kind, name, namespace) for kind in (MODEL_DEPLOYMENTS, NEWEST, RENAMED)]
            if len({obj["metadata"]["resourceVersion"] for obj in objects}) == 1:
                return objects


def changed(written: Object, read: Object) -> set[str]:
    """Return the written fields that the object lacks. The API server adds defaults."""
    return {
        f"{name}.{field}"
        for name, value in written.items()
        for field, inner in (value.items() if isinstance(value, dict) else [("", value)])
        if (read.get(name, {}).get(field) if field else read.get(name)) != inner
    }


async def test_many_models_convert_under_edits(
    converting: Suite, api: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace = await new_namespace(api)
    await until_converted(api, namespace)
    bodies = [model_deployment(f"m{number}", namespace, PLACED) for number in range(MANY)]
    await create_all(api, bodies)
    before = {kind: await read(api, kind, namespace) for kind in (MODEL_DEPLOYMENTS, RENAMED)}
    began = time.monotonic()
    move = asyncio.create_task(move_to(api, RENAMED, namespace))

    lengths = await edit_until(api, namespace, move)

    await move
    seconds = time.monotonic() - began
    after = {kind: await read(api, kind, namespace) for kind in (MODEL_DEPLOYMENTS, RENAMED)}
    edited = {f"m{number % (MANY // 2)}": length for number, length in enumerate(lengths)}
    with capsys.disabled():
        print(f"\n{len(lengths)} edits of {len(edited)} models while {MANY} moved in {seconds:.1f} s")
    assert stored_in(converting.plane, namespace) == {RENAMED.api_version}
    assert {n: after[MODEL_DEPLOYMENTS][n]["spec"]["engine"]["contextLength"] for n in edited} == edited
    assert {n: after[RENAMED][n]["spec"]["engine"]["maxLength"] for n in edited} == edited
    for kind, objects in before.items():
        assert objects.keys() == after[kind].keys()
        assert [n for n in objects if n not in edited and is_changed(objects[n], after[kind][n])] == []


async def move_to(api: Client, kind: Kind, namespace: str) -> None:
    """Store all models at the version, as `kubefoundry controller migrate` does."""
    await store(api, kind.version)
    for name in await read(api, MODEL_DEPLOYMENTS, namespace):
        await api.json_patch(kind, name, namespace, [], manager="test", subresource="/status")


async def edit_until(api: Client, namespace: str, task: asyncio.Task[None]) -> list[int]:
    """Edit the first half of the models in turn, at one version and the other, until the task is done.

    Return the length that each edit has written.
    """
    lengths: list[int] = []
    while not task.done():
        number = len(lengths)
        kind, field = (RENAMED, "maxLength") if number % 2 else (MODEL_DEPLOYMENTS, "contextLength")
        change = [{"op": "replace", "path": f"/spec/engine/{field}", "value": 2048 + number}]
        await api.json_patch(kind, f"m{number % (MANY // 2)}", namespace, change, manager="editor")
        lengths.append(2048 + number)
    return lengths


def is_changed(old: Object, new: Object) -> bool:
    """Check whether two reads differ. Core validates each model meanwhile, and adds that to the status."""
    without = [
        {**obj, "status": None, "metadata": {**obj["metadata"], "managedFields": None}} for obj in (old, new)
    ]
    return without[0] != without[1]


async def test_applies_at_both_versions_keep_ownership(converting: Suite, api: Client) -> None:
    namespace = await new_namespace(api)
    await until_converted(api, namespace)
    assert apply(converting, MODEL_DEPLOYMENTS, "m", namespace, PLACED) == ""

    foreign = apply(converting, MODEL_DEPLOYMENTS, "m", namespace, {"scaling": {"replicas": 3}}, "scaler")
    moved = apply(converting, RENAMED, "m", namespace, {**AS_RENAMED, "engine": {"type": "llamacpp"}})
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    conflict = apply(converting, RENAMED, "m", namespace, {**AS_RENAMED, "scaling": {"replicas": 2}})

    assert (foreign, moved) == ("", "")
    assert live["spec"]["nodeSelector"] == {"pool": "a"}
    assert "contextLength" not in live["spec"]["engine"]
    assert live["spec"]["scaling"]["replicas"] == 3
    owners = {
        entry["manager"]: entry["apiVersion"]
        for entry in live["metadata"]["managedFields"]
        if entry["operation"] == "Apply" and not entry.get("subresource")
    }
    assert owners == {"kubectl": RENAMED.api_version, "scaler": MODEL_DEPLOYMENTS.api_version}
    assert 'conflict with "scaler"' in conflict


async def test_stopped_core_fails_reads_at_other_versions_only(converting: Suite, api: Client) -> None:
    namespace = await new_namespace(api)
    await until_converted(api, namespace)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, PLACED), manager="test")
    label = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    with stopped(converting.components["core"]):
        refusals = [await refusal(api.get(kind, "m", namespace)) for kind in (NEWEST, RENAMED)]
        refusals.append(await refusal(api.json_patch(RENAMED, "m", namespace, label, manager="test")))
        body = {**model_deployment("n", namespace, AS_RENAMED), "apiVersion": RENAMED.api_version}
        refusals.append(await refusal(api.create(RENAMED, body, manager="test")))

        read_back = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        labelled = await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, label, manager="test")
        await api.create(MODEL_DEPLOYMENTS, model_deployment("later", namespace, CPU), manager="test")

    for text in refusals:
        assert "conversion webhook for kubefoundry.ai/" in text
    assert read_back["spec"]["nodeSelector"] == {"pool": "a"}
    assert labelled["metadata"]["labels"] == {"a": "b"}
    assert (await api.get(RENAMED, "later", namespace))["spec"]["model"]["name"] == "model-gguf"


async def refusal(request: Awaitable[Object]) -> str:
    """Return the message that refuses the request, or empty text."""
    try:
        await request
    except ApiError as error:
        return error.message
    return ""


async def test_patch_while_core_is_stopped_clears_managed_fields(converting: Suite, api: Client) -> None:
    """The API server cannot compare the owners at another version, and then removes all (docs/upgrade.md)."""
    namespace = await new_namespace(api)
    await until_converted(api, namespace)
    assert apply(converting, RENAMED, "patched", namespace, AS_RENAMED) == ""
    assert apply(converting, RENAMED, "applied", namespace, AS_RENAMED) == ""
    label = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]

    with stopped(converting.components["core"]):
        patched = await api.json_patch(MODEL_DEPLOYMENTS, "patched", namespace, label, manager="test")
        applied = apply(converting, MODEL_DEPLOYMENTS, "applied", namespace, {"image": "a:1"}, "other")

    assert patched["metadata"].get("managedFields") is None
    assert "conversion webhook for kubefoundry.ai/" in applied
    assert apply(converting, RENAMED, "patched", namespace, AS_RENAMED) == ""


async def test_core_starts_while_it_cannot_list_its_version(converting: Suite, api: Client) -> None:
    """All objects are stored at another version, so core's own list needs core's conversion."""
    namespace = await new_namespace(api)
    await until_converted(api, namespace)
    await move_to(api, RENAMED, namespace)
    converting.components["core"].stop()
    converting.plane.restart_api_server()

    converting.components["core"].start()
    converting.components["core"].wait_ready()

    assert stored_in(converting.plane, namespace) == {RENAMED.api_version}
    assert (await api.get(MODEL_DEPLOYMENTS, "first", namespace))["spec"]["model"]["id"] == "org/model-gguf"


async def test_conversion_is_switched_on_and_off_as_documented(fresh: Suite, api: Client) -> None:
    fresh.start("core")
    on, *off = document_commands(DOCUMENT, "Conversion", "kubectl")
    fresh.plane.kubectl(*on[1:])
    switch_on(fresh, renamed=False)
    namespace = await new_namespace(api)
    await until_converted(api, namespace, NEWEST)

    for words in off:
        fresh.plane.kubectl(*words[1:])
    fresh.components["core"].stop()

    await until_readable(api, NEWEST, "first", namespace)
    for kind in (MODEL_DEPLOYMENTS, PROVIDER_CONFIGS):
        assert (await api.get(CRDS, kind.crd))["spec"]["conversion"] == {"strategy": "None"}
