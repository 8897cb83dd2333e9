"""The duration of the admission webhooks (h): of direct requests, and in the API server's histogram."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
import uuid
from collections import defaultdict
from typing import Any

import aiohttp

from benchmarks.figures import Figure, Section, percentile
from benchmarks.rig import GPU, MANAGER, WEBHOOKS, Rig, deployment, say
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object

HISTOGRAM = "apiserver_admission_webhook_admission_duration_seconds"

Buckets = dict[str, dict[float, float]]
"""Cumulative counts by webhook and upper bound in seconds. The bound -1 has the sum of all durations."""


async def durations(rig: Rig, n: int) -> Section:
    """Measure section h."""
    say(f"h. {n} reviews directly, {n} through the API server")
    namespace = await rig.namespace()
    figures = []
    body = deployment("reviewed", namespace, GPU, "dynamo")
    for path, label in (("/mutate", "mutating"), ("/validate", "validating")):
        taken = await _direct(rig, path, body, n)
        figures += [
            Figure(f"{label}, direct: p50", percentile(taken, 0.5), "ms"),
            Figure(f"{label}, direct: p99", percentile(taken, 0.99), "ms"),
        ]
    before = histogram(rig)
    for index in range(n):
        body = deployment(f"reviewed-{index}", namespace, GPU, "dynamo")
        await rig.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER, dry_run=True)
    figures += histogram_figures(before, histogram(rig))
    return Section(
        "h",
        "Admission webhooks",
        f"{n} reviews of a ModelDeployment one after another over one kept TLS connection; then {n} dry-run creates, "
        f"and what they added to the API server's histogram {HISTOGRAM} (its buckets are coarse: the bound of the "
        "bucket is shown).",
        figures,
    )


async def _direct(rig: Rig, path: str, body: Object, n: int) -> list[float]:
    """Send n reviews to the webhook, and return the milliseconds of each."""
    live = await rig.client.get(WEBHOOKS, "kubefoundry-core")
    [client_config] = {
        json.dumps(hook["clientConfig"])
        for hook in live["webhooks"]
        if hook["clientConfig"]["url"].endswith("/validate")
    }
    config = json.loads(client_config)
    tls = ssl.create_default_context(cadata=base64.b64decode(config["caBundle"]).decode())
    url = config["url"].removesuffix("/validate") + path
    review = json.dumps(_review(body)).encode()
    taken = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        for _ in range(n):
            start = time.perf_counter()
            async with session.post(
                url, data=review, headers={"Content-Type": "application/json"}
            ) as response:
                answer = json.loads(await response.read())
            taken.append((time.perf_counter() - start) * 1000)
            if not answer["response"]["allowed"]:
                raise ValueError(f"the review of a valid ModelDeployment was refused: {answer}")
    return taken


def _review(body: Object) -> dict[str, Any]:
    """Return the AdmissionReview that the API server sends for a create."""
    meta = body["metadata"]
    resource = {"group": MODEL_DEPLOYMENTS.group, "version": MODEL_DEPLOYMENTS.version}
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {**resource, "kind": MODEL_DEPLOYMENTS.kind},
            "resource": {**resource, "resource": MODEL_DEPLOYMENTS.plural},
            "requestKind": {**resource, "kind": MODEL_DEPLOYMENTS.kind},
            "requestResource": {**resource, "resource": MODEL_DEPLOYMENTS.plural},
            "name": meta["name"],
            "namespace": meta["namespace"],
            "operation": "CREATE",
            "userInfo": {
                "username": "kubernetes-admin",
                "groups": ["system:masters", "system:authenticated"],
            },
            "object": body,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": MANAGER},
        },
    }


def histogram_figures(before: Buckets, after: Buckets) -> list[Figure]:
    """Return the durations of our webhooks that the API server counted between two reads of the histogram."""
    figures = []
    for name in ("mutate.modeldeployments.kubefoundry.ai", "validate.modeldeployments.kubefoundry.ai"):
        counts = {bound: after[name][bound] - before[name].get(bound, 0.0) for bound in after[name]}
        figures += [
            Figure(f"{name}, by the API server: mean", counts[-1] / counts[float("inf")] * 1000, "ms"),
            Figure(f"{name}, by the API server: p50 at most", _bound(counts, 0.5) * 1000, "ms"),
            Figure(f"{name}, by the API server: p99 at most", _bound(counts, 0.99) * 1000, "ms"),
        ]
    return figures


def histogram(rig: Rig) -> Buckets:
    """Return the API server's durations of admission webhooks for creates, since its start."""
    buckets: Buckets = defaultdict(dict)
    text = rig.suite.plane.kubectl("get", "--raw", "/metrics").stdout
    for line in text.splitlines():
        if not line.startswith(HISTOGRAM):
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        value = float(line.rpartition(" ")[2])
        if labels.get("operation") != "CREATE":
            continue
        if line.startswith(f"{HISTOGRAM}_bucket"):
            bound = float(labels["le"])
            buckets[labels["name"]][bound] = buckets[labels["name"]].get(bound, 0.0) + value
        elif line.startswith(f"{HISTOGRAM}_sum"):
            buckets[labels["name"]][-1] = buckets[labels["name"]].get(-1, 0.0) + value
    return buckets


def _bound(counts: dict[float, float], share: float) -> float:
    """Return the upper bound in seconds of the bucket in which the share is reached."""
    needed = counts[float("inf")] * share
    return min(bound for bound, number in counts.items() if bound >= 0 and number >= needed)
