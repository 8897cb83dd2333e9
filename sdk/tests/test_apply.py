"""What is written to an upstream object of which the store has heard since the turn began."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.write import apply
from kubefoundry_sdk._provider.write.admission import Admission
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.server_side_apply import NameTaken
from kubefoundry_sdk._runtime.store import Store
from support.wire import Asked, ok, refusal, wire

KIND = Kind("example.com", "v1", "engines", "Engine")

DEPLOYMENT = "11111111-1111-1111-1111-111111111111"

OURS: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Engine",
    "metadata": {
        "name": "m",
        "namespace": "n",
        "ownerReferences": [
            {
                "apiVersion": "kubefoundry.ai/v1alpha1",
                "kind": "ModelDeployment",
                "name": "m",
                "uid": DEPLOYMENT,
                "controller": True,
            }
        ],
    },
}


def standing(**metadata: Any) -> Store:
    """A store that knows an object of our name with that metadata."""
    store = Store()
    store.put({"metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "7", **metadata}})
    return store


async def revert(store: Store, admission: Admission | None = None) -> None:
    """Applies to an API server that is not there, so that any request is Unreachable."""
    nowhere = Credentials("http://127.0.0.1:1", None, lambda: None)
    async with Client(nowhere, user_agent="test") as client:
        evidence = admission or Admission()
        await apply.revert(client, KIND, store, OURS, manager="test", admission=evidence)


@settings(max_examples=20)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=60))
def test_rejected_dry_run_has_the_same_message_each_time(name: str) -> None:
    """Whatever differs is written, and each write is an event that leads to another try."""

    async def tried(suffix: str) -> str:
        def answer(asked: Asked) -> web.Response:
            generated = f"{asked.body['metadata']['generateName']}{suffix}"
            return refusal(422, "Invalid", f'engines "{generated}" is forbidden: {generated}: too many')

        async with wire(answer) as api:
            with pytest.raises(Refused) as error:
                main = {**OURS, "metadata": {**OURS["metadata"], "name": name}}
                await apply.try_new(api.client, KIND, main, manager="test")
        return str(error.value)

    first, second = asyncio.run(tried("xls8j")), asyncio.run(tried("g8wb7"))

    assert first == second
    assert f'engines "{name}" is forbidden: {name}: too many' in first


async def test_revert_refuses_object_of_another_owner() -> None:
    with pytest.raises(NameTaken, match="Engine 'm'"):
        await revert(standing())


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(Store(), id="none there"),
        pytest.param(standing(ownerReferences=OURS["metadata"]["ownerReferences"]), id="ours"),
        pytest.param(
            standing(annotations={"kubefoundry.ai/owner-uid": DEPLOYMENT}), id="ours, without its owner"
        ),
    ],
)
async def test_ours_is_written(store: Store) -> None:
    with pytest.raises(Unreachable):
        await revert(store)


CONFIG: dict[str, Any] = {**OURS, "apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize("dry_run", [True, False])
async def test_conflict_without_live_object_is_retried(dry_run: bool) -> None:
    """A ResourceQuota that was counted with meanwhile answers 409, too."""

    def answer(asked: Asked) -> web.Response:
        return refusal(404, "NotFound") if asked.method == "GET" else refusal(409, "Conflict", "of the quota")

    async with wire(answer) as api:
        with pytest.raises(ApiError, match="of the quota"):
            await stored(api.client, dry_run)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_refusal_names_config_map_of_another_owner(dry_run: bool) -> None:
    def answer(asked: Asked) -> web.Response:
        foreign = {"metadata": {"name": "m", "namespace": "n", "uid": "v"}}
        return ok(foreign) if asked.method == "GET" else refusal(409, "Conflict")

    async with wire(answer) as api:
        with pytest.raises(NameTaken, match="ConfigMap 'm'"):
            await stored(api.client, dry_run)


async def stored(client: Client, dry_run: bool) -> None:
    if dry_run:
        await apply.try_apply(client, CONFIG_MAPS, CONFIG, manager="test", live=None)
    else:
        await apply.revert(client, CONFIG_MAPS, Store(), CONFIG, manager="test", admission=Admission())


async def test_object_that_lost_its_marks_is_written_if_recognized() -> None:
    admission = Admission()
    live = standing().get(("n", "m"))
    assert live is not None
    admission.remember(("Engine", "m"), live)

    with pytest.raises(Unreachable):
        await revert(standing(), admission)
    live["metadata"]["uid"] = "another"
    admission.remember(("Engine", "m"), live)
    with pytest.raises(NameTaken):
        await revert(standing(), admission)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_controller_role_is_left_to_another_owner(dry_run: bool) -> None:
    """The API server refuses a second owner with `controller: true`."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o", "controller": True}
    mark = {"kubefoundry.ai/owner-uid": DEPLOYMENT}
    store, sent = standing(ownerReferences=[other], annotations=mark), []

    def answer(asked: Asked) -> web.Response:
        sent.append(asked.body["metadata"]["ownerReferences"])
        return ok(asked.body)

    async with wire(answer) as api:
        if dry_run:
            live = store.get(("n", "m"))
            await apply.try_apply(api.client, KIND, OURS, manager="test", live=live)
        else:
            await apply.revert(api.client, KIND, store, OURS, manager="test", admission=Admission())

    (ours,) = OURS["metadata"]["ownerReferences"]
    assert sent == [[{key: value for key, value in ours.items() if key != "controller"}]]
