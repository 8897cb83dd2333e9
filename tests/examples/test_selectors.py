"""Selectors by cost and by policy implement only the choice. The library keeps selections and handles refusals."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_selector import NoChoice, keep_or_choose
from kubefoundry_selector.candidate import Provider, provider, request
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, reason, serves, until_deployment

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "selectors"
SERVED = {"dynamo.gpu": "2.49", "kuberay.gpu": "1.99", "kaito.cpu": "0.12", "dynamo.cpu": "a lot"}


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COST, POLICY = program("by_cost"), program("by_policy")


def registered(name: str, *, cpu: bool = False) -> Provider:
    can: dict[str, Any] = {
        "engines": ["vllm", "llamacpp"],
        "servingModes": ["aggregated", "disaggregated"],
        "cpuSupport": cpu,
        "gpuSupport": not cpu,
    }
    config = {"metadata": {"name": name}, "spec": {"capabilities": can}, "status": {"ready": True}}
    return provider(config)


ALL = [registered("dynamo"), registered("kaito", cpu=True), registered("kuberay")]


def model(spec: Object, namespace: str = "n") -> Object:
    validated = {"type": "Validated", "status": "True", "observedGeneration": 1}
    meta = {"name": "m", "namespace": namespace, "uid": "u", "generation": 1}
    return {"metadata": meta, "spec": spec, "status": {"conditions": [validated]}}


@pytest.mark.parametrize(
    ("spec", "prices", "chosen"),
    [
        (GPU, SERVED, "kuberay"),
        (GPU, {**SERVED, "dynamo.gpu": "1.5"}, "dynamo"),
        (GPU, {**SERVED, "dynamo.gpu": "1.99"}, "dynamo"),
        (GPU, {**SERVED, "dynamo.gpu": "-1", "kuberay.gpu": "NaN"}, None),
        (DISAGGREGATED, SERVED, "kuberay"),
        (CPU, SERVED, "kaito"),
        (CPU, {}, None),
    ],
)
def test_cheapest_fitting_provider_is_chosen(
    spec: Object, prices: dict[str, str], chosen: str | None
) -> None:
    wish = request(model(spec))
    candidates = [candidate for candidate in ALL if candidate.cpu_support != wish.on_gpu]

    choice = COST.cheapest(wish, candidates, prices)

    assert (choice.provider if choice else None) == chosen


@pytest.mark.parametrize(
    ("spec", "namespace", "chosen"),
    [(GPU, "n", "dynamo"), (GPU, "team-batch", "kuberay"), (CPU, "n", "kaito"), (CPU, "team-batch", None)],
)
def test_first_allowed_provider_of_namespace_is_chosen(
    spec: Object, namespace: str, chosen: str | None
) -> None:
    fields = keep_or_choose(model(spec, namespace), ALL, POLICY.first_allowed)

    assert fields is not None
    assert fields.get("provider", {}).get("name") == chosen
    [condition] = fields["conditions"]
    assert condition["reason"] == ("AutoSelected" if chosen else "NoMatchingProvider")


def test_choice_is_kept_when_prices_change() -> None:
    deployment = model(GPU)
    first = keep_or_choose(deployment, ALL, lambda wish, candidates: COST.cheapest(wish, candidates, SERVED))
    assert first is not None
    deployment["status"] = {
        **first,
        "conditions": [*deployment["status"]["conditions"], *first["conditions"]],
    }

    again = keep_or_choose(
        deployment, ALL, lambda wish, candidates: COST.cheapest(wish, candidates, {"dynamo.gpu": "0.01"})
    )

    assert again is not None and again["provider"] == first["provider"]


def test_choice_outside_the_candidates_is_rejected() -> None:
    with pytest.raises(ValueError, match="kaito was chosen but is not a candidate"):
        keep_or_choose(model(GPU), ALL, lambda wish, candidates: POLICY.Choice("kaito", "why not"))


def test_reason_for_no_choice_is_reported_without_rules() -> None:
    fields = keep_or_choose(model(GPU), ALL, lambda wish, candidates: NoChoice("the budget of n is spent"))

    assert fields is not None
    [condition] = fields["conditions"]
    assert condition["reason"] == "NoMatchingProvider"
    assert "the budget of n is spent" in condition["message"]
    assert "rule" not in condition["message"]


@pytest.mark.integration
async def test_selector_by_cost_replaces_the_default_one(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    selector = fresh.install("selector")
    prices = str(FOLDER / "prices.yaml")
    fresh.plane.kubectl("apply", "-f", prices)
    no_prices = '{"data": {"dynamo.gpu": null}}'
    where = ("configmap", "kubefoundry-prices", "-n", NAMESPACE)
    fresh.plane.kubectl("patch", *where, "--type=merge", "-p", no_prices)
    selector.command = [sys.executable, str(FOLDER / "by_cost.py"), *selector.command[1:]]
    fresh.start("core", "dynamo", "selector")

    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "NoMatchingProvider"
    )
    # The choice depends on an object that only this selector watches.
    fresh.plane.kubectl("apply", "-f", prices)
    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["provider"]["selectedReason"] == "cheapest gpu at 2.49 an hour → dynamo"

    await api.create(MODEL_DEPLOYMENTS, model_deployment("c", namespace, CPU), manager="test")
    none = await until_deployment(
        api,
        "c",
        namespace,
        lambda obj: (
            reason(obj, "ProviderSelected") == "NoMatchingProvider"
            and obj["status"]["message"].startswith("The selector chose no provider for ")
        ),
    )
    assert message(none, "Ready").startswith("The selector chose no provider for ")
