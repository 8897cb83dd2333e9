"""The kinds of edits of a model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from benchmarks.rig import KINDS, MANAGER, WEBHOOKS
from benchmarks.truth.ledger import Ledger
from benchmarks.truth.watched import Watched
from kubefoundry_sdk._api.kinds import Kind, Object

DOWN: Final = 3.0
"""Seconds for which an upstream operator or its webhook is down after an edit."""
STOPS_FIRST: Final = "stops the old pod first"
OF_REPLICAS: Final = frozenset({"rolls out slowly", "scale"})
REFUSED: Final[Mapping[str, Object]] = {
    "kaito": {"scaling": {"replicas": 2}},
    "dynamo": {"podTemplate": {"metadata": {"labels": {"nvidia.com/dynamo-x": "y"}}}},
    "kuberay": {"podTemplate": {"metadata": {"labels": {"ray.io/x": "y"}}}},
    "direct": {"podTemplate": {"metadata": {"labels": {"kubefoundry.ai/x": "y"}}}},
}


async def works(model: Watched) -> None:
    """Request a new version that starts."""
    await model.edit(model.version())


async def rolls_slowly(model: Watched) -> None:
    """Request a new version of three replicas."""
    await model.edit({"scaling": {"replicas": 3}})
    await model.settled()
    model.ledger = Ledger()
    await model.edit(model.version())


async def stops_first(model: Watched) -> None:
    """Request a new version whose only old pod stops before the new pod starts, as with a cache for one node."""
    await model.edit({"provider": {"name": model.provider, "overrides": {"rollout": "replace"}}})
    await model.settled()
    model.ledger = Ledger()
    await model.edit(model.version())


async def bad_image(model: Watched) -> None:
    """Request a new version whose pods do not start."""
    await model.edit(model.version(), fails=True)


async def refused(model: Watched) -> None:
    """Request a spec that the provider refuses."""
    await model.edit({**model.version(), **REFUSED[model.provider]})


async def upstream_down(model: Watched) -> None:
    """Request a new version while the upstream operator is stopped."""
    pid = model.ground.upstream_pid(model.provider)
    os.kill(pid, signal.SIGSTOP)
    try:
        await model.edit(model.version())
        await asyncio.sleep(DOWN)
    finally:
        os.kill(pid, signal.SIGCONT)


async def webhook_down(model: Watched) -> None:
    """Request a new version while a webhook refuses all writes of the upstream kind in the namespace."""
    client, body = model.ground.client, _failing_webhook(KINDS[model.provider], model.namespace)
    webhook = await client.create(WEBHOOKS, body, manager=MANAGER)
    try:
        await asyncio.sleep(1)  # the API server learns of the webhook by a watch of its own
        await model.edit(model.version())
        await asyncio.sleep(DOWN)
    finally:
        await client.delete(WEBHOOKS, "truth", None, uid=webhook["metadata"]["uid"])


async def second_edit(model: Watched) -> None:
    """Request a new version, and another one before the first serves."""
    await model.edit(model.version())
    await asyncio.sleep(0.3)
    await model.edit(model.version())


async def rollback(model: Watched) -> None:
    """Request a version that does not start, then the old version again."""
    before = model.number
    await model.edit(model.version(), fails=True)
    await asyncio.sleep(DOWN)
    await model.edit(model.version(before))


async def scale(model: Watched) -> None:
    """Request two replicas of the same version."""
    await model.edit({"scaling": {"replicas": 2}})


EDITS: Final[Mapping[str, Callable[[Watched], Awaitable[None]]]] = {
    "works": works,
    "rolls out slowly": rolls_slowly,
    STOPS_FIRST: stops_first,
    "bad image": bad_image,
    "refused": refused,
    "upstream down": upstream_down,
    "upstream webhook down": webhook_down,
    "second edit": second_edit,
    "rollback": rollback,
    "scale": scale,
}


def applies(edit: str, provider: str) -> bool:
    """Check whether the provider has this kind of edit. kaito refuses replicas, and only direct stops a pod first."""
    return provider == "direct" if edit == STOPS_FIRST else provider != "kaito" or edit not in OF_REPLICAS


def _failing_webhook(kind: Kind, namespace: str) -> Object:
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": ["*"],
        "resources": [kind.plural],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    webhook = {
        "name": "away.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": WEBHOOKS.kind,
        "metadata": {"name": "truth"},
        "webhooks": [webhook],
    }
