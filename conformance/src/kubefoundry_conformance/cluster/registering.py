"""REG and PRO: the registration, and the process itself."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from kubefoundry_conformance.check import Check, Finding, Skipped
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.settings import TIMEOUT
from kubefoundry_conformance.cluster.waiting import SECONDS, condition
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.reasons import RULES_VALID, UPSTREAM_READY

RECONCILED: Final = "kubefoundry_reconciliation_duration_seconds"
"""A metric of every provider (contract §6)."""

END: Final = 5.0
"""Seconds from SIGTERM (contract §6)."""

LONGEST: Final = 16 << 20
"""Most bytes of an answer of the subject: the metrics of our own components have some 100 KiB."""

RULES: Final = [{"condition": "false", "priority": 7}]
"""Selection rules of an administrator, which never select the subject."""


async def check_missing_crd(rig: Rig) -> Finding | None:
    """Check that `UpstreamReady` is not True before the CRD is installed, and that it names the CRD.

    Raises:
        Skipped: The upstream kind is part of Kubernetes.
    """
    if rig.crd is None:
        raise Skipped("the upstream kind is part of Kubernetes")
    config = await rig.registered(lambda obj: condition(obj, UPSTREAM_READY))
    upstream_ready = condition(config, UPSTREAM_READY)
    if (
        upstream_ready["status"] == "True"
        or rig.kind.crd not in f"{upstream_ready['reason']} {upstream_ready['message']}"
    ):
        return Finding(
            f"UpstreamReady={upstream_ready['status']} {upstream_ready['message']!r}",
            f"False, and the name {rig.kind.crd}",
        )
    return None


async def check_readiness(rig: Rig) -> Finding | None:
    """Check that `status.ready` is not true before the CRD is installed, then install it and expect true."""

    def is_ready(obj: Object | None) -> Any:
        return ((obj or {}).get("status") or {}).get("ready")

    if rig.crd is not None:
        config = await rig.registered(lambda obj: "ready" in (obj.get("status") or {}))
        if is_ready(config):
            return Finding("status.ready is true without the CRD", "false")
    await rig.install_crd()
    await rig.registered(is_ready)
    return None


async def check_heartbeats(rig: Rig) -> Finding | None:
    """Check that the time between two heartbeats is at most half of the heartbeat time-out."""

    def heartbeat_of(obj: Object | None) -> Any:
        return ((obj or {}).get("status") or {}).get("lastHeartbeat")

    async def next_after(heartbeat: Any) -> Any:
        return heartbeat_of(await rig.registered(lambda obj: heartbeat_of(obj) != heartbeat))

    last = await next_after(heartbeat_of(await rig.registered(heartbeat_of)))
    # A stalled disk delays a heartbeat, too. A subject that is too slow delays each of them.
    for _ in range(3):
        start_time = time.monotonic()
        last = await next_after(last)
        seconds = time.monotonic() - start_time
        if seconds <= TIMEOUT / 2:
            return None
    return Finding(f"{seconds:.1f} s between two heartbeats", f"{TIMEOUT / 3} s")


async def check_selection_rules(rig: Rig) -> Finding | None:
    """Start our selector, and expect that it can compile the subject's selection rules.

    Raises:
        Skipped: The cluster is not the kit's own.
    """
    suite = rig.own("the subject's selection rules are replaced by one that selects nothing")
    await asyncio.to_thread(suite.start, "selector")
    try:
        config = await rig.registered(
            lambda obj: condition(obj, RULES_VALID).get("observedGeneration") == obj["metadata"]["generation"]
        )
    finally:
        await asyncio.to_thread(suite.components["selector"].stop)
    rules_valid = condition(config, RULES_VALID)
    if rules_valid["status"] != "True":
        return Finding(f"RulesValid=False: {rules_valid['message']}", "rules that the selector can read")
    return None


async def check_rules_of_administrator(rig: Rig) -> Finding | None:
    """Check that a restart of the subject restores its capabilities, and keeps an administrator's rules."""
    live = await rig.registered()
    capabilities = live["spec"]["capabilities"]
    changed = {**capabilities, "cpuSupport": not capabilities.get("cpuSupport", False)}
    body = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {"name": rig.provider},
        "spec": {
            "capabilities": changed,
            "selectionRules": RULES,
        },
    }
    await rig.stop()
    await rig.api.apply(PROVIDER_CONFIGS, body, manager="administrator")
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    after = await rig.registered(lambda obj: obj["spec"]["capabilities"] == capabilities)
    if after["spec"].get("selectionRules") != RULES:
        return Finding(
            f"selectionRules are {after['spec'].get('selectionRules')}", f"the administrator's, {RULES}"
        )
    return None


def own_answer(port: int, path: str) -> str:
    """Return the text that the subject serves at a path of this machine.

    Raises:
        OSError: There is no answer, another status than 200, or a longer text than `LONGEST`.
        HTTPException: The answer is not HTTP.
    """
    # Not urllib, which may ask a proxy and follows redirects: the subject's own answer counts.
    with closing(HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"{path} answers {answer.status} {answer.reason}")
        text = answer.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise OSError(f"{path} answers with more than {LONGEST >> 20} MiB")
        return text.decode(errors="replace")


async def check_ports(rig: Rig, work: Callable[[Rig], Awaitable[object]]) -> Finding | None:
    """Check that `/readyz` and `/metrics` answer, and that every reconcile is counted.

    Args:
        rig: The environment of the check.
        work: Makes the subject reconcile an object.
    """

    async def counted() -> float:
        metrics = await asyncio.to_thread(own_answer, rig.subject.metrics_port, "/metrics")
        return sum(map(float, re.findall(rf"^{RECONCILED}_count{{[^}}]*}} (\S+)", metrics, re.MULTILINE)))

    try:
        await asyncio.to_thread(own_answer, rig.subject.health_port, "/readyz")
        before = await counted()
        # A reconcile is counted in its last step. Once the second model is reconciled, the first one is counted.
        await work(rig)
        await work(rig)
        after = await counted()
    except (OSError, HTTPException) as error:
        return Finding(
            f"{error}", "/readyz and /metrics at KUBEFOUNDRY_HEALTH_PORT and KUBEFOUNDRY_METRICS_PORT"
        )
    if after <= before:
        return Finding(
            f"{RECONCILED}_count was {before:.0f} and is {after:.0f} after two models",
            "every reconcile is counted",
        )
    return None


async def check_termination(rig: Rig) -> Finding | None:
    """Send SIGTERM to the subject, expect exit code 0 within END seconds, and start it again."""
    start_time = time.monotonic()
    code = await rig.stop()
    seconds = time.monotonic() - start_time
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    if seconds > END or code != 0:
        end = "it was killed" if code is None else f"exit code {code}"
        return Finding(f"{end} after {seconds:.1f} s", f"0 within {END:.0f} s of SIGTERM")
    return None


REGISTRATION: Final = (
    of_rig("REG-4", "the registration without the CRD", check_missing_crd, "a reason"),
    of_rig("REG-3", "the CRD comes", check_readiness, "status.ready true"),
    of_rig("REG-2", "three heartbeats", check_heartbeats, "a heartbeat"),
    of_rig("REG-5", "the selector reads the rules", check_selection_rules, "RulesValid"),
    of_rig(
        "REG-1",
        "rules and capabilities changed by an administrator",
        check_rules_of_administrator,
        "capabilities are put back, rules stay",
    ),
)


async def run_model(rig: Rig) -> Object:
    """Create a ModelDeployment, and wait until it is Running."""
    return await rig.running(rig.place())


def process_checks(work: Callable[[Rig], Awaitable[object]]) -> tuple[Check[Rig], ...]:
    """Return the checks of the process itself.

    Args:
        work: Makes the subject reconcile an object.
    """
    return (
        of_rig(
            "PRO-1",
            "/readyz, and /metrics before and after two models",
            partial(check_ports, work=work),
            "both answer",
        ),
        of_rig("PRO-2", "SIGTERM", check_termination, "an end"),
    )
