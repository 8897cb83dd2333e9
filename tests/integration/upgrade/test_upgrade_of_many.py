"""A new version of every provider writes to none of a hundred serving objects."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.restarts import restarted
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration

MANY = 40
OLD = {"KUBEFOUNDRY_DEFAULT_IMAGE": "vllm=example.com/engine:2.54.0"}
NEW = {"KUBEFOUNDRY_DEFAULT_IMAGE": "vllm=example.com/engine:2.55.0"}


async def test_nothing_is_written_to_what_runs(suite: Suite, api: Client, namespace: str) -> None:
    providers = list(UPSTREAM)
    names = [f"m-{index}" for index in range(MANY)]
    with ExitStack() as older:
        for provider in providers:
            older.enter_context(restarted(suite.components[provider], OLD))
        for index, name in enumerate(names):
            body = model_deployment(name, namespace, GPU, provider=providers[index % 3])
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        for name in names:
            await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running", seconds=300)
        before = await marks(api, namespace)
        log, started = AuditLog(suite), time.perf_counter()

        with ExitStack() as newer:
            for provider in providers:
                newer.enter_context(restarted(suite.components[provider], NEW))
            # Turns are taken in order: when a later one runs, all have had theirs.
            for provider in providers:
                body = model_deployment(f"later-{provider}", namespace, GPU, provider=provider)
                await api.create(MODEL_DEPLOYMENTS, body, manager="test")
            for provider in providers:
                await until_deployment(
                    api, f"later-{provider}", namespace, lambda obj: phase(obj) == "Running", seconds=300
                )
            after = await marks(api, namespace)

    plurals = {"configmaps", *(kind.plural for kind in UPSTREAM.values())}
    written = [
        f"{component}: {entry['verb']} {entry['requestURI']}"
        for component, entry in log.all(namespace)
        if entry["verb"] in WRITES
        and entry["objectRef"]["resource"] in plurals
        and not entry["objectRef"].get("name", "").startswith("later-")
    ]
    print(f"{len(written)} writes to {len(before)} upstream objects in {time.perf_counter() - started:.1f} s")
    assert written == []
    assert len(before) == MANY
    assert before.items() <= after.items()


async def marks(api: Client, namespace: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Uid and generation of each upstream object."""
    found = {}
    for provider, kind in UPSTREAM.items():
        items, _ = await api.list(kind, namespace)
        for obj in items:
            meta = obj["metadata"]
            found[provider, meta["name"]] = (meta["uid"], meta["generation"])
    return found
