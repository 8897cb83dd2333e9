"""Random edits by a tenant: each difference is reverted or named, Ready is never a lie, and nothing is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.tenant import KINDS, deployments_available, tenant
from support.tenant_edits import (
    MODEL_EDITS,
    UPSTREAM_EDITS,
    changed_value,
    content,
    forged_fields,
    leaves,
)
from support.waiting import SECONDS, serves, until_deployment

pytestmark = pytest.mark.integration

MODELS: Final = 5
EDITS: Final = 3
WRITES: Final = 6
"""Of a provider to one upstream object: more than the edits, because an operator may be quicker."""


@pytest.fixture
async def user(suite: Suite, api: Client, namespace: str, tmp_path: Path) -> AsyncIterator[Client]:
    """The tenant of the test's namespace, in which Deployments become available."""
    async with tenant(suite, namespace, tmp_path) as client, deployments_available(api, namespace):
        yield client


@pytest.mark.parametrize("provider", KINDS)
async def test_random_edits_are_named_or_reverted(
    suite: Suite, user: Client, namespace: str, provider: str
) -> None:
    chance, kind = Random(provider), KINDS[provider]
    models = [f"m{number}" for number in range(MODELS)]
    await serving(user, namespace, provider, *models, "other")
    before = {name: await user.get(kind, name, namespace) for name in [*models, "other"]}
    log = AuditLog(suite)
    done: dict[str, list[str]] = {name: [] for name in models}

    for name in models * EDITS:
        done[name] += await edited(user, namespace, name, provider, chance)

    for name in models:
        await until_honest(user, namespace, kind, before[name], done[name])
    other = await user.get(kind, "other", namespace)
    assert content(other) == content(before["other"])
    written = log.writes(f"provider-{provider}", namespace, kind.plural)
    for name in models:
        assert sum(f"/{name}?" in entry for entry in written) <= WRITES, (done[name], written)


async def serving(user: Client, namespace: str, provider: str, *models: str) -> None:
    spec = CPU if provider in ("direct", "kaito") else GPU
    for name in models:
        body = model_deployment(name, namespace, spec, provider=provider)
        await user.create(MODEL_DEPLOYMENTS, body, manager="test")
    for name in models:
        await until_deployment(user, name, namespace, serves)


async def edited(user: Client, namespace: str, name: str, provider: str, chance: Random) -> list[str]:
    """Make one edit of a model or of its upstream object, and return its name; [] if the API server denies it."""
    kind = KINDS[provider]
    try:
        other = await user.get(MODEL_DEPLOYMENTS, "other", namespace)
        live = await user.get(kind, name, namespace)
        model = await user.get(MODEL_DEPLOYMENTS, name, namespace)
        if chance.random() < 0.2:
            of_model = chance.choice(MODEL_EDITS)
            operations, called, target = of_model(chance, model), of_model.__name__, MODEL_DEPLOYMENTS
        else:
            change = chance.choice((changed_value, *UPSTREAM_EDITS))
            operations, called, target = change(chance, provider, live, other), change.__name__, kind
        await user.json_patch(target, name, namespace, operations, manager="kubectl-edit")
    except ApiError:
        # The object has changed meanwhile, or lacks what the edit replaces.
        return []
    return [called]


async def until_honest(user: Client, namespace: str, kind: Kind, before: Object, edits: list[str]) -> None:
    """Wait until the model's status names each difference of the upstream object, which is the one of before."""
    name, lies = before["metadata"]["name"], ["not looked at"]
    try:
        async with asyncio.timeout(SECONDS):
            while lies:
                live = await user.get(kind, name, namespace)
                assert live["metadata"]["uid"] == before["metadata"]["uid"], edits
                assert "deletionTimestamp" not in live["metadata"], edits
                model = await user.get(MODEL_DEPLOYMENTS, name, namespace)
                hidden = forged_fields.__name__ in edits
                lies = untold(model, before, live, hidden=hidden)
                await asyncio.sleep(PROBE if lies else 0)
    except TimeoutError:
        raise AssertionError(f"{kind.kind} {name} after {edits}: {lies}; {model['status']}") from None


def untold(model: Object, before: Object, live: Object, *, hidden: bool) -> list[str]:
    """Return the differences that the model's status does not name, or that `Ready` denies.

    hidden: whether the tenant has rewritten managedFields, which may hide an addition.
    """
    was, now = dict(leaves(content(before))), dict(leaves(content(live)))
    words = model["status"].get("message", "")
    found = []
    for path in sorted(was.keys() | now.keys()):
        if was.get(path) == now.get(path) or (hidden and path not in was):
            continue
        named = [part for part in path if not part.isdigit()]
        if not any(part in words for part in named[-3:]):
            found.append(f"{'.'.join(path)} is not named")
        if path in was and serves(model):
            found.append(f"{'.'.join(path)} is another, and the newest generation is Ready")
    return found
