"""Objects that a provider does not read, because those of their namespace would take too much memory."""

from __future__ import annotations

import random
from typing import Any

from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from support.things import PROVIDER, SPEC, crd

LARGE = 250_000
"""Bytes of annotations that Kubernetes still takes."""


@simulated
async def test_conflict_with_an_unread_object_says_what_to_do() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        fill(harness, harness.upstream_object)
        await harness.restart()
        await harness.edit({"scaling": {"replicas": 2}})
        await harness.advance(60)

        condition = harness.condition("ResourceCreated")

    assert condition["reason"] == "ApplyFailed"
    assert "does not read all Thing objects of namespace 'default'" in condition["message"]
    assert "create models in another namespace" in condition["message"]


def fill(harness: Harness, like: Any) -> None:
    """Create objects that are listed before the model's and leave no room for it."""
    sizes = [LARGE] * 140 + [LARGE >> step for step in range(1, 14) for _ in range(2)]
    for number, size in enumerate(sizes):
        body = {
            "apiVersion": like["apiVersion"],
            "kind": like["kind"],
            "metadata": {
                "name": f"a-{number:03}",
                "namespace": like["metadata"]["namespace"],
                "annotations": {"example.com/text": random.Random(number).randbytes(size // 2).hex()},
            },
            "spec": like["spec"],
        }
        harness._send("POST", path(harness._kind(), like["metadata"]["namespace"], None), body)
