"""Checks of a provider's results before any write: the API server can store each accepted result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk import Endpoint, Observation, Rendered, Replicas, Schema
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.reconcile import failures
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk.testing import deployment, violations
from kubefoundry_widgets.provider import provider

CRD = yaml.safe_load((Path(__file__).parents[2] / "crds" / "modeldeployments.yaml").read_text())
STATUS = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
SCHEMA = Schema("example.com/v1")
SOUND = replace(provider({"vllm": "example.com/vllm:1"}), helper_kinds=("ConfigMap",))
MODEL = deployment({"model": {"id": "org/model"}, "engine": {"type": "vllm"}}, "m", "n")
SEEN = Observation("Running", "DeploymentReady", "serves", Replicas(1, 1, 1), Endpoint("m", 8000))
WIDGET: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "m"}}
HELPER: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m-config"}}

ODD: Any = st.sampled_from(
    [None, "", "x", -1, 0, 1, 65535, 65536, 2**31, 1.5, True, [], {}, "Running", "Terminating"]
)
NUMBERS: Any = st.integers(-1, 2) | ODD
OBSERVATIONS: Any = st.builds(
    Observation,
    phase=st.sampled_from(["Pending", "Deploying", "Running", "Failed", "Terminating"]) | ODD,
    reason=st.sampled_from(["DeploymentReady", "Progressing", "Failed", "ScaledToZero", "Unknown"]) | ODD,
    message=st.just("m") | ODD,
    replicas=st.builds(Replicas, NUMBERS, NUMBERS, NUMBERS) | ODD,
    endpoint=st.builds(
        Endpoint,
        st.sampled_from(["m", "M", "a.b", "x" * 64]) | ODD,
        NUMBERS,
        st.sampled_from(["", "https://gw.infra/m", "ftp://x", "http://u:p@x", "http://x/?q"]) | ODD,
        st.sampled_from(["", "org/m", "-m", "x" * 254]) | ODD,
    )
    | ODD,
    selector=st.sampled_from(["", "a=b", "x" * 1025]) | ODD,
)


@given(OBSERVATIONS)
def test_observation_is_rejected_or_can_be_stored(seen: Any) -> None:
    asked = replace(SOUND, observe=lambda model, live: seen)
    try:
        report = Report(1, observation=results.observe(asked, MODEL, {}))
    except Fault as fault:
        assert str(fault).startswith("observe returned ")
        return

    status = report.status(SOUND)

    for item in status["conditions"]:
        item["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    assert violations(STATUS, status) == []
    assert status["phase"] != "Running" or (status["replicas"]["ready"] > 0 and status["endpoint"])


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (replace(SEEN, phase=cast(Any, "Serving")), "phase 'Serving', which is not one of Pending"),
        (replace(SEEN, endpoint=Endpoint("m", 0)), "port 0, which is not 1 to 65535"),
        (replace(SEEN, endpoint=Endpoint("m", 80, model="m;")), "model 'm;', which is not a name"),
        (replace(SEEN, replicas=Replicas(1, 0, 0)), "phase Running with 0 ready replicas"),
        (replace(SEEN, replicas=Replicas(1, -1, 0)), "-1 ready replicas"),
        (replace(SEEN, reason="Failed"), "phase Running with reason Failed"),
        (replace(SEEN, endpoint=Endpoint(url="https://u:p@gw")), "URL 'https://u:p@gw'"),
        (None, "None, not an Observation"),
    ],
)
def test_observation_is_rejected_when_crd_refuses_a_value(seen: Any, words: str) -> None:
    with pytest.raises(Fault, match=re.escape(f"observe returned {words}")):
        results.observe(replace(SOUND, observe=lambda model, live: seen), MODEL, {})


def test_endpoint_of_a_gateway_needs_no_service() -> None:
    gateway = replace(SEEN, endpoint=Endpoint(url="https://gw.infra.example:8443/models/m"))

    report = Report(1, observation=results.observe(replace(SOUND, observe=lambda *_: gateway), MODEL, {}))

    assert report.status(SOUND)["endpoint"] == {"url": "https://gw.infra.example:8443/models/m"}


def main(**meta: Any) -> Rendered:
    return Rendered({**WIDGET, "metadata": {**WIDGET["metadata"], **meta}})


@pytest.mark.parametrize(
    ("rendered", "words"),
    [
        (Rendered(WIDGET, (HELPER,)), None),
        (main(namespace="n", labels={"a": "b"}), None),
        (None, "None, not a Rendered"),
        (main(name="other"), "an upstream object of the name 'other', not m"),
        (main(namespace="kube-system"), "the upstream object in namespace 'kube-system', not n"),
        (main(labels={"a": 1}), "the upstream object whose labels are not all strings"),
        (
            main(finalizers=["x"]),
            "the upstream object with metadata.finalizers, which only the runtime sets",
        ),
        (Rendered({**WIDGET, "kind": "Secret"}), "the upstream object as 'example.com/v1' 'Secret'"),
        (Rendered({**WIDGET, "apiVersion": "v1"}), "the upstream object as 'v1' 'Widget'"),
        (Rendered({**WIDGET, "spec": {1, 2}}), "the upstream object that is not JSON"),
        (Rendered({"kind": "Widget"}), "the upstream object without apiVersion or kind"),
        (Rendered(WIDGET, ({**HELPER, "kind": "Secret"},)), "helper 'Secret' 'm-config' of 'v1'"),
        (Rendered(WIDGET, ({**HELPER, "kind": "Service"},)), "helper 'Service' 'm-config' of 'v1'"),
        (Rendered(WIDGET, (HELPER, HELPER)), "helper 'ConfigMap' 'm-config' twice"),
        (
            Rendered(WIDGET, ({**HELPER, "metadata": {"name": "kube-root-ca.crt"}},)),
            "helper 'ConfigMap' 'kube-root-ca.crt', whose name does not begin with m",
        ),
    ],
)
def test_what_is_not_this_deployments_is_refused(rendered: Any, words: str | None) -> None:
    asked = replace(SOUND, render=lambda model, schema: rendered)
    if words is None:
        assert results.render(asked, MODEL, SCHEMA) is rendered
        return

    with pytest.raises(Fault, match=re.escape(f"render returned {words}")):
        results.render(asked, MODEL, SCHEMA)


def ends() -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda: "no", "supports returned 'no', not a list of sentences"),
        (lambda: None, "supports returned None"),
        (lambda: [3], "supports returned 3 as a problem"),
        (lambda: [" "], "supports returned ' ' as a problem"),
        (ends, "supports tried to exit the process"),
    ],
)
def test_problems_are_sentences(answer: Callable[[], Any], words: str) -> None:
    with pytest.raises(Fault, match=re.escape(words)):
        results.supports(replace(SOUND, supports=lambda model, schema: answer()), MODEL, SCHEMA)


def test_provider_error_message_names_provider_and_fault() -> None:
    stop = failures.stop(SOUND, Fault("render returned None, not a Rendered"))

    assert stop.reason == "ProviderError"
    assert stop.message == (
        "Provider widgets has an error: render returned None, not a Rendered; "
        "report it to its authors, its log has more"
    )
