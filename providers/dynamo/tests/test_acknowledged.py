"""An edit counts as picked up by the fields that the installed CRD declares, in every release."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.provider import with_defaults
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.reported_generation import Generations, Snapshot, judge, note_applied
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk.testing.generated import deployment
from support.upstream import UpstreamCRD, crds, requires_shared, standin

PROVIDER = with_defaults()
MANAGER = "dynamo-provider"
NAMES_NONE = frozenset({"v0.4.1", "v0.7.1", "v0.8.1", "v0.9.1"})
"""Releases whose CRD declares no `status.observedGeneration`."""
LATER = 1000.0
"""Seconds, longer than any status takes to settle."""
AGGREGATED = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
PODS = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
READY = {"type": "Ready", "status": "True", "reason": "all_resources_are_ready", "message": "all ready"}


def following(crd: UpstreamCRD) -> Upstream:
    """Return the provider's view of a cluster with that CRD."""
    client = Client(Credentials("", None, lambda: None), user_agent="t")
    process = Process("t", options.parser("t", "").parse_args([]), client)
    upstream = Upstream(process, PROVIDER, MANAGER, lambda: None)
    upstream.replace([crd.document], "1")
    return upstream


def names_newest(crd: UpstreamCRD, generation: int, status: dict[str, Any]) -> bool:
    """Check whether Ready names the newest edit, which was applied before the operator wrote the status.

    Args:
        crd: The installed CRD.
        generation: The generation of the upstream object.
        status: Its status.
    """
    upstream = following(crd)
    assert upstream.kind is not None
    written = {"manager": "o", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:05Z"}
    managed = [{"manager": MANAGER, "operation": "Apply", "time": "2026-01-01T00:00:01Z"}, written]
    live = {
        "apiVersion": upstream.kind.api_version,
        "kind": upstream.kind.kind,
        "metadata": {
            "name": "m",
            "namespace": "models",
            "uid": "u",
            "generation": generation,
            "managedFields": managed,
        },
        "status": status,
    }
    seen = results.observe(PROVIDER, deployment(AGGREGATED, "m", "models"), live)
    if seen.phase != "Running":
        return False
    newest = generation + 1
    ready = {"type": "Ready", "status": "True", "observedGeneration": generation}
    model = {
        "metadata": {"name": "m", "namespace": "models", "generation": newest},
        "spec": {},
        "status": {"observedGeneration": generation, "conditions": [ready]},
    }
    generations, report = Generations(), Report(newest)
    note_applied(generations, report, live)
    looks = (
        Snapshot(
            model, live, report, seen, PROVIDER, MANAGER, now, names_generation=upstream.names_generation
        )
        for now in (0.0, LATER)
    )
    return [judge(generations, look) for look in looks][-1] is None


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("generation", [1, 2, 7])
@pytest.mark.parametrize("crd", crds("dynamo"), ids=str)
def test_bare_state_acknowledges_only_where_crd_has_no_field(crd: UpstreamCRD, generation: int) -> None:
    accepted = names_newest(crd, generation, {"state": "successful"})

    assert accepted is (crd.name in NAMES_NONE)


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("generation", [1, 2, 7])
@pytest.mark.parametrize("crd", crds("dynamo"), ids=str)
def test_full_status_acknowledges_its_own_generation(crd: UpstreamCRD, generation: int) -> None:
    counts = "components" if crd.storage_version == "v1beta1" else "services"
    full: dict[str, Any] = {"state": "successful", "conditions": [READY]}
    if crd.name not in NAMES_NONE:
        full |= {"observedGeneration": generation, counts: {"Frontend": PODS, "VllmWorker": PODS}}

    assert names_newest(crd, generation, full)
    if crd.name not in NAMES_NONE:
        assert not names_newest(crd, generation, {**full, "observedGeneration": generation - 1})


def test_bare_state_is_no_acknowledgement_on_the_stand_in() -> None:
    assert not names_newest(standin("dynamo"), 2, {"state": "successful"})
