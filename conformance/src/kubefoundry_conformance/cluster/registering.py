"""REG and PRO: the registration, and the process itself."""

from __future__ import annotations

import asyncio
import re
import time
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from kubefoundry_conformance.check import Check, Finding, Skipped
from kubefoundry_conformance.cluster.rig import TIMEOUT, Rig, of_rig
from kubefoundry_conformance.cluster.waiting import condition
from kubefoundry_sdk.api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk.api.reasons import RULES_VALID, UPSTREAM_READY

RECONCILED: Final = "kubefoundry_reconciliation_duration_seconds"
"""A metric of every provider (contract §6)."""

END: Final = 5.0
"""Seconds from SIGTERM (contract §6)."""

RULES: Final = [{"condition": "false", "priority": 7}]
"""Of an administrator: they select the subject for nothing."""


async def without_the_crd(rig: Rig) -> Finding | None:
    if rig.crd is None:
        raise Skipped("the upstream kind is part of Kubernetes")
    config = await rig.registered(lambda obj: condition(obj, UPSTREAM_READY))
    said = condition(config, UPSTREAM_READY)
    if said["status"] == "True" or rig.kind.crd not in f"{said['reason']} {said['message']}":
        return Finding(
            f"UpstreamReady={said['status']} {said['message']!r}", f"False, and the name {rig.kind.crd}"
        )
    return None


async def ready_follows(rig: Rig) -> Finding | None:
    def ready(obj: Object | None) -> Any:
        return ((obj or {}).get("status") or {}).get("ready")

    if rig.crd is not None:
        config = await rig.registered(lambda obj: "ready" in (obj.get("status") or {}))
        if ready(config):
            return Finding("status.ready is true without the CRD", "false")
    await rig.install_crd()
    await rig.registered(ready)
    return None


async def heartbeats(rig: Rig) -> Finding | None:
    def beat(obj: Object | None) -> Any:
        return ((obj or {}).get("status") or {}).get("lastHeartbeat")

    first = beat(await rig.registered(beat))
    second = beat(await rig.registered(lambda obj: beat(obj) != first))
    third_after = time.monotonic()
    await rig.registered(lambda obj: beat(obj) not in (first, second))
    took = time.monotonic() - third_after
    if took > TIMEOUT / 2:
        return Finding(f"{took:.1f} s between two heartbeats", f"{TIMEOUT / 3} s")
    return None


async def rules_compile(rig: Rig) -> Finding | None:
    suite = rig.own("the subject's selection rules are replaced by one that selects nothing")
    await asyncio.to_thread(suite.start, "selector")
    try:
        judged = await rig.registered(
            lambda obj: condition(obj, RULES_VALID).get("observedGeneration") == obj["metadata"]["generation"]
        )
    finally:
        await asyncio.to_thread(suite.components["selector"].stop)
    said = condition(judged, RULES_VALID)
    if said["status"] != "True":
        return Finding(f"RulesValid=False: {said['message']}", "rules that the selector can read")
    return None


async def administrators_rules(rig: Rig) -> Finding | None:
    live = await rig.registered()
    stated = live["spec"]["capabilities"]
    other = {**stated, "cpuSupport": not stated.get("cpuSupport", False)}
    body = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {"name": rig.provider},
        "spec": {
            "capabilities": other,
            "selectionRules": RULES,
        },
    }
    await rig.stop()
    await rig.api.apply(PROVIDER_CONFIGS, body, manager="administrator")
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    after = await rig.registered(lambda obj: obj["spec"]["capabilities"] == stated)
    if after["spec"].get("selectionRules") != RULES:
        return Finding(
            f"selectionRules are {after['spec'].get('selectionRules')}", f"the administrator's, {RULES}"
        )
    return None


async def ports(rig: Rig, work: Callable[[Rig], Awaitable[object]]) -> Finding | None:
    """work: something that the subject reconciles."""

    def read(port: int, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    async def counted() -> float:
        metrics = await asyncio.to_thread(read, rig.subject.metrics_port, "/metrics")
        return sum(map(float, re.findall(rf"^{RECONCILED}_count{{[^}}]*}} (\S+)", metrics, re.MULTILINE)))

    try:
        await asyncio.to_thread(read, rig.subject.health_port, "/readyz")
        before = await counted()
        # The last of a reconcile's steps is to count it: the second comes after the first.
        await work(rig)
        await work(rig)
        after = await counted()
    except OSError as error:
        return Finding(
            f"{error}", "/readyz and /metrics at KUBEFOUNDRY_HEALTH_PORT and KUBEFOUNDRY_METRICS_PORT"
        )
    if after <= before:
        return Finding(
            f"{RECONCILED}_count was {before:.0f} and is {after:.0f} after two models",
            "every reconcile is counted",
        )
    return None


async def ends(rig: Rig) -> Finding | None:
    began = time.monotonic()
    code = await rig.stop()
    took = time.monotonic() - began
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    if took > END or code != 0:
        how = "it was killed" if code is None else f"exit code {code}"
        return Finding(f"{how} after {took:.1f} s", f"0 within {END:.0f} s of SIGTERM")
    return None


REGISTRATION: Final = (
    of_rig("REG-4", "the registration without the CRD", without_the_crd, "a reason"),
    of_rig("REG-3", "the CRD comes", ready_follows, "status.ready true"),
    of_rig("REG-2", "three heartbeats", heartbeats, "a heartbeat"),
    of_rig("REG-5", "the selector reads the rules", rules_compile, "RulesValid"),
    of_rig(
        "REG-1",
        "rules and capabilities changed by an administrator",
        administrators_rules,
        "capabilities are put back, rules stay",
    ),
)


async def a_model(rig: Rig) -> Object:
    return await rig.running(rig.place())


def process(work: Callable[[Rig], Awaitable[object]]) -> tuple[Check[Rig], ...]:
    """Of the process itself. work: something that it reconciles."""
    return (
        of_rig(
            "PRO-1",
            "/readyz, and /metrics before and after two models",
            partial(ports, work=work),
            "both answer",
        ),
        of_rig("PRO-2", "SIGTERM", ends, "an end"),
    )
