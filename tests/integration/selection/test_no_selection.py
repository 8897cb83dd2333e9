"""No provider can be selected: the model says why, and continues as soon as one can."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dashboard.verdict import judge
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import CPU, GPU, model_deployment
from support.registrations import register, until_judged
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, phase, reason, serves, until_deployment

pytestmark = pytest.mark.integration


async def until_waiting(api: Client, name: str, namespace: str, because: str, reported: str) -> Object:
    """The ModelDeployment once its condition ProviderSelected says just that; phase and Ready say it waits."""
    obj = await until_deployment(
        api, name, namespace, lambda obj: message(obj, "ProviderSelected") == reported
    )
    selected = find(obj["status"]["conditions"], "ProviderSelected") or {}
    assert (selected["status"], selected["reason"]) == ("False", because)
    assert (phase(obj), reason(obj, "Ready")) == ("Pending", "Progressing")
    assert "provider" not in obj["status"]
    return obj


async def create(
    api: Client, name: str, namespace: str, spec: dict[str, Any], provider: str | None = None
) -> None:
    body = model_deployment(name, namespace, spec, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="user")


async def test_model_runs_once_a_selector_is_installed(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, standin("kaito").document)
    fresh.simulate("kaito")
    fresh.start("core", "kaito")
    none = "No provider specified and provider-selector not installed"
    await create(api, "m", namespace, CPU)
    waiting = await until_waiting(api, "m", namespace, "NoSelector", none)
    assert waiting["status"]["message"] == none

    fresh.start("selector")
    running = await until_deployment(api, "m", namespace, serves)
    assert reason(running, "ProviderSelected") == "AutoSelected"

    fresh.components["selector"].stop()
    await create(api, "later", namespace, CPU)
    await until_waiting(api, "later", namespace, "NoSelector", none)
    kept = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert kept["status"] == running["status"]


async def test_selector_that_died_is_missed_and_taken_back(fresh: Suite, api: Client, namespace: str) -> None:
    """Core learns it from the Lease, which nobody renews."""
    fresh.start("core", "selector")
    await create(api, "m", namespace, CPU)
    nobody = "No healthy providers available: none is registered. Ask an administrator to install a provider"
    await until_waiting(api, "m", namespace, "NoHealthyProviders", nobody)

    fresh.components["selector"].kill()
    none = "No provider specified and provider-selector not installed"
    await until_waiting(api, "m", namespace, "NoSelector", none)

    fresh.start("selector")
    await until_waiting(api, "m", namespace, "NoHealthyProviders", nobody)


async def test_each_rejected_provider_is_named_with_its_reason(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core", "selector")
    await create(api, "m", namespace, GPU)
    await until_waiting(
        api,
        "m",
        namespace,
        "NoHealthyProviders",
        "No healthy providers available: none is registered. Ask an administrator to install a provider",
    )

    await register(api, "a", ("true", 1), ready=False)
    await until_waiting(
        api,
        "m",
        namespace,
        "NoHealthyProviders",
        "No healthy providers available: a is not ready."
        " Ask an administrator to check the providers' controllers and upstream operators",
    )

    await register(api, "b", ("true", 1), engines=("llamacpp",))
    await register(api, "c")
    await register(api, "d", ("spec.model.id == 'org/other'", 1))
    obj = await until_waiting(
        api,
        "m",
        namespace,
        "NoMatchingProvider",
        "No provider matches engine=vllm, mode=aggregated, gpu=1: a is not ready;"
        " b does not support vllm engine; c has no selection rules (it must be named); d has no matching rule."
        " Change the spec, or name a provider in spec.provider.name",
    )

    other = [{"op": "replace", "path": "/spec/model/id", "value": "org/other"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, other, manager="user")
    obj = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
    )
    assert obj["status"]["provider"]["name"] == "d"


async def test_provider_that_is_not_registered_is_waited_for(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core", "selector")
    await create(api, "m", namespace, GPU, provider="mine")
    await until_waiting(
        api,
        "m",
        namespace,
        "ProviderNotRegistered",
        (
            "Provider 'mine' is not registered (registered: none): "
            "ask an administrator to install it; kubefoundry provider list shows all"
        ),
    )
    for name in ("b", "a"):
        await register(api, name, ("true", 1))
    await until_waiting(
        api,
        "m",
        namespace,
        "ProviderNotRegistered",
        (
            "Provider 'mine' is not registered (registered: a, b): "
            "name one of these, or ask an administrator to install it; kubefoundry provider list shows all"
        ),
    )

    await register(api, "mine")
    obj = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "ExplicitlySelected"
    )
    assert obj["status"]["provider"] == {"name": "mine", "selectedReason": "explicit provider selection"}


async def test_last_resort_waits_for_a_provider_that_is_down(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core", "selector")
    await until_judged(api, await register(api, "a", ("true", 1)))
    await until_judged(api, await register(api, "last", ("true", -1)))
    await register(api, "a", ("true", 1), ready=False)

    await create(api, "m", namespace, GPU)

    why = (
        "No healthy providers available but last, which is of last resort: a is not ready. Waiting for up to five "
        "minutes; ask an administrator to check that provider's controller and upstream operator, or set "
        "spec.provider.name to last"
    )
    waiting = await until_waiting(api, "m", namespace, "NoHealthyProviders", why)

    # Only the selector knows how long `a` has been down; who asks reads its words, not another guess.
    explained = await CommandLine(fresh.plane.kubeconfig, namespace)("explain", "m")
    first, second, *_ = explained.out.splitlines()
    assert first == f"no provider is selected for this spec: {why}"
    assert second.startswith("the rules, with the providers as they are now: ")
    judged, _ = judge(waiting, (await api.list(PROVIDER_CONFIGS))[0])
    assert (judged.waits, judged.explanation.decision.provider) == (why, "last")

    await register(api, "a", ("true", 1))
    await until_deployment(
        api, "m", namespace, lambda obj: obj["status"].get("provider", {}).get("name") == "a"
    )
