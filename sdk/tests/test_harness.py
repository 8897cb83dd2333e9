"""The harness for tests of providers: its clock, its view of the cluster, and its refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kubefoundry_sdk import (
    Deployment,
    Rendered,
    Schema,
)
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk.testing import Harness, Unsupported, simulated
from kubefoundry_sdk.testing._harness import Failure
from support.things import PROVIDER, SPEC, crd, render


@simulated
async def test_harness_shows_writes_and_events() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        await harness.upstream({"ready": 1})

    assert [event.reason for event in harness.events] == ["ResourceCreated", "DeploymentReady"]
    assert [write.path.split("/")[-2:] for write in harness.writes if write.code == 201] == [
        ["things", "model"]
    ]


@simulated
async def test_restart_of_newer_provider_rewrites_nothing() -> None:
    def newer(deployment: Deployment, schema: Schema) -> Rendered:
        rendered = render(deployment, schema)
        rendered.main["spec"]["image"] = "example.com/engine:2"
        return rendered

    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        stored = harness.upstream_object

        await harness.restart(replace(PROVIDER, version="0.2.0", render=newer))
        assert harness.upstream_object == stored

        await harness.edit({"scaling": {"replicas": 2}})
        assert harness.upstream_object["spec"]["replicas"] == 2


@simulated
async def test_heartbeat_follows_clock_of_test() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        before = harness.registration["status"]["lastHeartbeat"]
        await harness.advance(3600)

        assert (before, harness.registration["status"]["lastHeartbeat"]) < (
            "2026-01-01T00:01:00Z",
            "2026-01-01T00:59:00Z",
        )
        assert harness.registration["status"]["lastHeartbeat"] > "2026-01-01T00:58:00Z"


@simulated
async def test_drift_is_reverted() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        foreign = {**harness.upstream_object, "spec": {"image": "example.com/other", "replicas": 1}}
        harness.put(foreign, manager="somebody")
        await harness.advance(60)

        assert harness.upstream_object["spec"]["image"] == "example.com/engine:1"


@pytest.mark.parametrize("how", ["lost", "unsent", "conflict", "crash"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_failed_write_changes_no_outcome(number: int, how: Failure) -> None:
    @simulated
    async def run() -> None:
        async with Harness(PROVIDER, crd()) as harness:
            harness.fail_write(number, how)
            await harness.create(SPEC)
            if how == "crash":
                await harness.restart()
            await harness.advance(60)
            await harness.upstream({"ready": 1})
            assert harness.status["phase"] == "Running"
            created = [write for write in harness.writes if "/things/" in write.path and write.code == 201]
            assert len(created) == 1

            harness.fail_write(number, how)
            await harness.delete()
            if how == "crash":
                await harness.restart()
            await harness.advance(60)
            assert not harness.model
            assert not harness.upstream_object

    run()


@simulated
async def test_invalid_spec_is_refused() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        with pytest.raises(ApiError, match=r"422 Invalid.*image is required"):
            await harness.create({"model": {"source": "custom"}, "engine": {"type": "llamacpp"}})


@simulated
async def test_unknown_rule_is_named() -> None:
    rule = {"rule": "self.size() < 9", "message": "too long"}
    installed = crd(image={"type": "string", "x-kubernetes-validations": [rule]})
    with pytest.raises(Unsupported, match=r"CEL, in which spec\.image has the rule 'self\.size"):
        async with Harness(PROVIDER, installed) as harness:
            await harness.create(SPEC)


def test_only_advance_moves_clock() -> None:
    @simulated
    async def asleep() -> None:
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match="only the test moves the clock"):
        asleep()


async def test_harness_needs_simulated_clock() -> None:
    with pytest.raises(RuntimeError, match="put @simulated above the test"):
        async with Harness(PROVIDER, crd()):
            pass
