"""Every field of contract §4 and every provider: after an edit the upstream operator runs the new value.

The simulated operators ignore and refuse what the real ones do, and tell what runs behind the spec. `in place`: the
upstream object stays. `recreate`: another one takes its name. `refused`: the provider says no, and what ran goes on.
"""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.changes.every import EVERY
from support.changes.refused import REFUSED
from support.changes.seen import Seen, Spec, at, runs
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.sampled(3)]


GARBAGE = 300.0
"""Bound on a new object under an old name: its operator waits until the garbage collector has taken the old one's
Services, and that learns of new kinds every 30 s only."""


@pytest.fixture(scope="module")
def suite(strict_suite: Suite) -> Suite:
    return strict_suite


CHANGES = [
    pytest.param(provider, how, *rest, id=f"{provider} {field}")
    for provider, changes in EVERY.items()
    for how, field, *rest in changes
]


async def running(api: Client, namespace: str, provider: str, spec: Spec) -> Object:
    """The upstream object of a new ModelDeployment that runs."""
    body = model_deployment("m", namespace, spec, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    live = await until(api, UPSTREAM[provider], "m", namespace, runs)
    assert live is not None
    return live


async def edit(api: Client, namespace: str, change: Spec) -> Object:
    """The ModelDeployment with these fields of its spec replaced, None for removed."""
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    spec = {name: value for name, value in {**live["spec"], **change}.items() if value is not None}
    patch = [{"op": "replace", "path": "/spec", "value": spec}]
    return await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, patch, manager="test")


@pytest.mark.parametrize(("provider", "how", "base", "change", "seen"), CHANGES)
async def test_new_value_of_a_field_runs(
    suite: Suite, api: Client, namespace: str, provider: str, how: str, base: Spec, change: Spec, seen: Seen
) -> None:
    before = await running(api, namespace, provider, base)
    assert not seen(runs(before))

    edited = await edit(api, namespace, change)

    live = await until(api, UPSTREAM[provider], "m", namespace, lambda obj: seen(runs(obj)), seconds=GARBAGE)
    assert live is not None
    assert (live["metadata"]["uid"] == before["metadata"]["uid"]) == (how == "in place")
    wanted = "Pending" if change.get("scaling") == {"replicas": 0} else "Running"
    settled = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == wanted
            and obj["status"]["observedGeneration"] == edited["metadata"]["generation"]
            # the old one is Running while it is being replaced
            and reason(obj, "ResourceCreated") == "ResourceCreated"
        ),
    )
    assert reason(settled, "Ready") == ("ScaledToZero" if wanted == "Pending" else "DeploymentReady")


@pytest.mark.parametrize(
    ("provider", "change", "says"),
    [pytest.param(provider, *rest, id=f"{provider} {field}") for provider, field, *rest in REFUSED],
)
async def test_refused_change_leaves_the_running_workload(
    suite: Suite, api: Client, namespace: str, provider: str, change: Spec, says: str
) -> None:
    before = await running(api, namespace, provider, GPU)

    edited = await edit(api, namespace, change)

    reported = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert says in message(reported, "ProviderCompatible")
    assert reported["status"]["observedGeneration"] < edited["metadata"]["generation"]
    assert phase(reported) == "Running"
    assert reported["status"]["message"].endswith("; the last good version keeps serving")
    assert reported["status"]["endpoint"]
    after = await api.get(UPSTREAM[provider], "m", namespace)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert runs(after) == runs(before)


async def test_kuberay_suspends_at_0_replicas_and_comes_back(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, "kuberay", GPU)

    await edit(api, namespace, {"scaling": {"replicas": 0}})

    zero = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "Ready") == "ScaledToZero")
    assert phase(zero) == "Pending"
    assert "endpoint" not in zero["status"]
    assert runs(await api.get(UPSTREAM["kuberay"], "m", namespace)) == {}

    await edit(api, namespace, {"scaling": {"replicas": 2}})

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    live = await until(
        api,
        UPSTREAM["kuberay"],
        "m",
        namespace,
        lambda obj: at("serve.applications[0].deployments[0].num_replicas", 2)(runs(obj)),
    )
    assert live is not None
    assert live["metadata"]["uid"] == before["metadata"]["uid"]


async def test_autoscaled_worker_count_is_left_alone(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, "kuberay", GPU)
    path = "/spec/rayClusterConfig/workerGroupSpecs/0/replicas"
    theirs = [{"op": "replace", "path": path, "value": 7}]
    await api.json_patch(UPSTREAM["kuberay"], "m", namespace, theirs, manager="autoscaler")

    await edit(api, namespace, {"scaling": {"replicas": 2}})

    live = await until(
        api,
        UPSTREAM["kuberay"],
        "m",
        namespace,
        lambda obj: at("serve.applications[0].deployments[0].num_replicas", 2)(runs(obj)),
    )
    assert live is not None
    assert live["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] == 7
