"""Whatever goes wrong meanwhile, in the end there is what a suite makes that never saw anything go wrong.

A short run with a fixed seed is part of the tests; `make chaos` makes a long one, each time another. To repeat one:
`KUBEFOUNDRY_CHAOS_SEED` and `KUBEFOUNDRY_CHAOS_ROUNDS`; what an edit finds there still depends on the machine.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES
from kubefoundry_sdk._api.names import API_VERSION, MODEL_DEPLOYMENT
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog
from support.chaos.edits import Editor
from support.chaos.faults import COMPONENTS, FAULTS, ground
from support.chaos.state import converged, seen
from support.deployments import GPU, model_deployment
from support.suites import running_suite
from support.waiting import phase, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

SEED = int(os.environ.get("KUBEFOUNDRY_CHAOS_SEED", "7"))
ROUNDS = int(os.environ.get("KUBEFOUNDRY_CHAOS_ROUNDS", "10"))
EDITS = 5
"""In each round, while its fault lasts."""

PROVIDERS = ("kaito", "dynamo", "kuberay")
NAMESPACE = "chaos"

FLAGS = ["--no-services"]
"""Of the simulated operators. A Service of an object that is gone keeps its name until the garbage collector comes,
which takes it minutes after several restarts of the API server."""


async def test_faults_leave_the_state_of_an_undisturbed_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    faults: Counter[str] = Counter()
    for folder in ("chaos", "calm"):
        (tmp_path / folder).mkdir()
    with running_suite(tmp_path / "chaos", *PROVIDERS, simulator_flags=FLAGS) as suite:
        async with client_of(suite) as api:
            await make_namespace(api)
            editor = Editor(api, NAMESPACE, chance)
            async with ground(suite, tmp_path, random.Random(SEED + 1)) as rig:
                for number in range(ROUNDS):
                    fault = FAULTS[number % len(FAULTS)]
                    faults[fault] += 1
                    async with rig.wrong(fault):
                        for _ in range(EDITS):
                            await editor.once()
                            await some_time(chance)
                specs = await editor.settle()
                assert specs
                await converged(api, NAMESPACE, specs)
                ended = [name for name, one in suite.components.items() if not one.running]
                # What the simulated operators still had to say when the last one served may need a write.
                await written_meanwhile(suite, api, "first")
                writes = await written_meanwhile(suite, api, "second")
                left = await seen(api, NAMESPACE)
                served_by = {name: left[f"ModelDeployment {name}"]["provider"]["name"] for name in specs}
                made_up = rig.faulty_answers
    with running_suite(tmp_path / "calm", *PROVIDERS, simulator_flags=FLAGS) as calm:
        async with client_of(calm) as api:
            await make_namespace(api)
            calm.start(*COMPONENTS)
            expected = await fresh(api, specs, served_by)
    with capsys.disabled():
        print(
            f"\nchaos: seed {SEED}, {ROUNDS} rounds, {editor.done.total()} edits {dict(editor.done)}, faults "
            f"{dict(faults)}, {made_up} answers made up; {len(specs)} ModelDeployments converged, "
            f"{len(writes)} writes afterwards"
        )

    assert ended == []
    assert writes == []
    assert left == expected


def client_of(suite: Suite) -> Client:
    return Client(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), user_agent="test")


async def make_namespace(api: Client, name: str = NAMESPACE) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await api.create(NAMESPACES, body, manager="test")


async def some_time(chance: random.Random) -> None:
    """A random while, for nothing: edits that all come at once would be one."""
    await asyncio.sleep(chance.choice((0, 0, 0.05, 0.3)))


async def written_meanwhile(suite: Suite, api: Client, others: str) -> list[str]:
    """What our processes write about the namespace while they have to look at something else."""
    log = AuditLog(suite)
    await api.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": others}}, manager="test"
    )
    for provider in PROVIDERS:
        body = model_deployment(provider, others, GPU, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    for provider in PROVIDERS:
        await until_deployment(api, provider, others, lambda obj: phase(obj) == "Running")
    return [
        f"{component}: {entry['verb']} {entry['requestURI']}"
        for component, entry in log.all(NAMESPACE)
        if entry["verb"] in WRITES and entry["objectRef"]["resource"] != "events"
    ]


async def fresh(api: Client, specs: Mapping[str, Any], served_by: Mapping[str, str]) -> dict[str, Any]:
    """What a suite makes of the specs at once. A choice is kept through edits, so it is named here."""
    for name, written in specs.items():
        spec = {**written, "provider": {**written.get("provider", {}), "name": served_by[name]}}
        meta = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": API_VERSION, "kind": MODEL_DEPLOYMENT, "metadata": meta, "spec": spec}
        await api.create(MODEL_DEPLOYMENTS, body, manager="user")
    await converged(api, NAMESPACE, dict(specs))
    return await seen(api, NAMESPACE)
