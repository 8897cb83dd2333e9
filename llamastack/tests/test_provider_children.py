"""Tests when the objects of a service with pods of its own are deleted."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_llamastack import names
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.outcome import Outcome
from kubefoundry_llamastack.provider_children import KINDS, ProviderChildren
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings
from kubefoundry_llamastack.stores import Stores, owner_uid
from kubefoundry_llamastack.write import Writer
from kubefoundry_sdk._runtime.store import Key, Store
from support.wire import Asked, wire

Make = Callable[..., Distribution]
Object = dict[str, Any]

REVISION: Final = "deployment.kubernetes.io/revision"
GUARD: Final[Object] = {"providerId": "guard", "image": "example.com/guard:1"}
OWN: Final[Object] = {**GUARD, "service": {"mode": "Deployment", "replicas": 2}}
STALLED: Final[Object] = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}


def stored(obj: Object, **meta: Any) -> Object:
    return {
        **obj,
        "metadata": {"uid": f"uid-{obj['kind']}", "resourceVersion": "1", **obj["metadata"], **meta},
    }


def server_of(cr: Distribution, *, updated: int = 1, total: int = 1, revision: str = "2") -> Object:
    body = deployment(cr, PodInputs(image="example.com/stack:1", tool="t"), Settings())
    numbers = {"replicas": total, "updatedReplicas": updated, "availableReplicas": total}
    live = stored(body, uid="uid-server", generation=1, annotations={REVISION: revision})
    live["spec"]["replicas"] = 1
    return {**live, "status": {**numbers, "observedGeneration": 1, "conditions": []}}


def owned(kind: str, name: str, owner: str, **meta: Any) -> Object:
    reference = {"kind": "X", "name": owner, "uid": f"uid-{owner}", "controller": True}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "ownerReferences": [reference],
            **meta,
        },
    }


def stores_of(cr: Distribution, server: Object | None, *others: Object) -> Stores:
    """Return stores with the objects of a service that the CR has or had, and with the server's."""
    children = {
        kind: Store(managers=frozenset({names.MANAGER}), index=owner_uid)
        for kind in (*KINDS, names.ROLE_BINDINGS)
    }
    [item] = provider_deployment.of(cr)
    for kind, manifest in provider_deployment.objects(cr, item):
        children[kind].put(stored(manifest))
    if server is not None:
        children[names.DEPLOYMENTS].put(server)
    replica_sets, pods = Store(index=owner_uid), Store(index=owner_uid)
    for obj in others:
        (pods if obj["kind"] == "Pod" else replica_sets).put(obj)
    unused = cast(Any, None)
    return Stores(unused, children, unused, unused, unused, replica_sets, pods, *([unused] * 5))


async def delete(cr: Distribution, stores: Stores, times: int = 1) -> tuple[list[str], Outcome]:
    """Delete what no server calls. Return the deleted objects and the outcome."""

    def answer(asked: Asked) -> web.Response:
        return web.json_response({})

    memories: defaultdict[Key, Memory] = defaultdict(Memory)
    outcome = Outcome()
    async with wire(answer) as server:
        writer = Writer(server.client, memories.__getitem__)
        children = ProviderChildren(writer, stores, memories.__getitem__, lambda: 0.0)
        for _ in range(times):
            await children.delete_unused(cr, outcome)
        return [asked.path.rsplit("/", 2)[1] for asked in server.asked], outcome


ALL: Final = ["deployments", "poddisruptionbudgets", "services", "serviceaccounts", "networkpolicies"]
OLD_SET: Final = owned("ReplicaSet", "old", "server", annotations={REVISION: "1"})
NEW_SET: Final = owned("ReplicaSet", "new", "server", annotations={REVISION: "2"})
LAST_POD: Final = owned("Pod", "last", "old", deletionTimestamp="2026-01-01T00:00:00Z")
NEW_POD: Final = owned("Pod", "first", "new")


@pytest.mark.accept("L2-27", "L2-28")
@pytest.mark.parametrize(
    ("numbers", "others", "deleted"),
    [
        ({}, (OLD_SET, NEW_SET, NEW_POD), ALL),
        ({"updated": 0}, (OLD_SET, NEW_SET), []),
        ({"total": 2}, (OLD_SET, NEW_SET, LAST_POD, NEW_POD), []),
        ({}, (OLD_SET, NEW_SET, LAST_POD, NEW_POD), []),
        ({}, (OLD_SET,), []),
        ({}, (), []),
    ],
    ids=["complete", "not updated", "two pods", "old pod terminates", "old ReplicaSet seen", "none seen"],
)
@pytest.mark.parametrize("provider", [GUARD, {**GUARD, "service": {}}], ids=["removed", "sidecar"])
async def test_service_is_deleted_after_last_pod_that_calls_it(
    make: Make, provider: Object, numbers: Any, others: tuple[Object, ...], deleted: list[str]
) -> None:
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, provider))

    paths, _ = await delete(cr, stores_of(before, server_of(cr, **numbers), *others))

    assert paths == deleted


@pytest.mark.accept("L2-27")
async def test_service_is_kept_while_server_is_rendered_with_it(make: Make) -> None:
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, GUARD))

    paths, _ = await delete(cr, stores_of(before, server_of(before), NEW_SET, NEW_POD))

    assert paths == []


async def test_service_is_deleted_without_any_server(make: Make) -> None:
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, GUARD))

    paths, _ = await delete(cr, stores_of(before, None))

    assert paths == ALL


async def test_budget_alone_is_deleted_with_second_replica(make: Make) -> None:
    one = {**GUARD, "service": {"mode": "Deployment"}}
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, one))

    paths, outcome = await delete(cr, stores_of(before, server_of(before), NEW_SET))

    assert paths == ["poddisruptionbudgets"]
    assert [reason for _, reason, _ in outcome.events] == ["ChildRemoved"]


@pytest.mark.accept("L2-27")
async def test_event_names_service_of_stalled_rollout_once(make: Make) -> None:
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, GUARD))
    server = server_of(cr, updated=0)
    server["status"]["conditions"] = [STALLED]

    paths, outcome = await delete(cr, stores_of(before, server, NEW_SET), times=2)

    assert paths == []
    [(type_, reason, note)] = outcome.events
    assert (type_, reason) == ("Warning", "ProviderKept")
    assert "'guard'" in note


async def test_label_alone_deletes_no_other_object(make: Make) -> None:
    """Anybody who may edit the server's Deployment could write the label."""
    before, cr = (make(externalProviders={"safety": [item]}) for item in (OWN, GUARD))
    server = server_of(cr)
    server["metadata"]["labels"] |= {names.LLSD_PROVIDER_LABEL: "guard", names.LLSD_LABEL: "chat"}

    paths, _ = await delete(cr, stores_of(before, server, NEW_SET))

    assert paths == ALL


def named(make: Make, name: str, provider_id: str) -> Distribution:
    """Return a CR with a service, whose uid is its name."""
    cr = make(externalProviders={"safety": [{**OWN, "providerId": provider_id}]})
    return replace(cr, name=name, uid=name)


@given(
    words=st.lists(st.from_regex(r"[a-z0-9]{1,14}", fullmatch=True), min_size=3, max_size=4),
    has_lost_owner=st.booleans(),
    data=st.data(),
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joined_names_are_refused_or_apart(
    make: Make, words: list[str], has_lost_owner: bool, data: st.DataObject
) -> None:
    """CR `a-b` with provider `c` and CR `a` with provider `b-c` have one name for their objects, unless it is cut."""
    places = data.draw(st.permutations(range(1, len(words))))[:2]
    first, second = (named(make, "-".join(words[:at]), "-".join(words[at:])) for at in places)
    [one], [other] = provider_deployment.of(first), provider_deployment.of(second)
    if len("-".join([*words, "provider"])) > provider_deployment.LABEL:
        assert one.name != other.name
        return
    stores = stores_of(first, None)
    if has_lost_owner:
        for kind in KINDS:
            for key in stores.children[kind].keys():  # noqa: SIM118 (a Store is no dict)
                live = cast(Object, stores.children[kind].get(key))
                stores.children[kind].put({**live, "metadata": {**live["metadata"], "ownerReferences": []}})
    memories: defaultdict[Key, Memory] = defaultdict(Memory)
    # Without a client, each request fails the test.
    writer = Writer(cast(Any, None), memories.__getitem__)
    children, outcome = ProviderChildren(writer, stores, memories.__getitem__, lambda: 0.0), Outcome()

    asyncio.run(children.write(second, outcome))
    asyncio.run(children.delete_unused(second, outcome))

    conflict = outcome.obstacles[0]
    assert (conflict.type, conflict.reason) == ("DeploymentReady", "NameConflict")
    assert (
        f"'{one.name}' already exists and belongs to LlamaStackDistribution '{first.name}'"
        in conflict.message
    )
