"""The object that `kubectl apply -f` is going to store over a live one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from kubefoundry_cli.apply import LAST_APPLIED, applied, kept
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.model import from_text
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving

HEAD = "apiVersion: kubefoundry.ai/v1alpha1\nkind: ModelDeployment\nmetadata: {name: m}\n"


def model(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m", **metadata}, "spec": spec}


def applied_before(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {LAST_APPLIED: json.dumps(model(spec, **metadata))}


def test_field_of_others_stays_and_is_named() -> None:
    file = model({"image": "a"})
    live = model({"image": "a", "scaling": {"replicas": 3}}, annotations=applied_before({"image": "a"}))

    after = applied(file, live)

    assert after["spec"] == live["spec"]
    assert kept(file, after, {"scaling": {"replicas": 1}}) == ["spec.scaling.replicas=3"]


def test_default_that_stays_is_not_named() -> None:
    file = model({"image": "a"})
    live = model({"image": "a", "scaling": {"replicas": 1}})

    assert kept(file, applied(file, live), {"scaling": {"replicas": 1}}) == []


@pytest.mark.parametrize("value", [{}, {"image": None}], ids=["missing", "null"])
def test_field_that_the_file_drops_is_removed(value: dict[str, Any]) -> None:
    live = model({"image": "a", "env": []}, annotations=applied_before({"image": "a"}))

    assert applied(model(value), live)["spec"] == {"env": []}


def test_null_of_a_field_of_others_removes_nothing() -> None:
    assert applied(model({"image": None}), model({"image": "a"}))["spec"] == {"image": "a"}


def test_labels_that_the_file_drops_are_removed_and_others_stay() -> None:
    live = model({}, labels={"old": "a", "other": "b"}, annotations=applied_before({}, labels={"old": "a"}))

    assert applied(model({}, labels={"new": "c"}), live)["metadata"]["labels"] == {"other": "b", "new": "c"}


def test_unreadable_record_removes_nothing() -> None:
    live = model({"image": "a"}, annotations={LAST_APPLIED: "{"})

    assert applied(model({}), live)["spec"] == {"image": "a"}


def test_list_with_one_model_is_read_as_that_model() -> None:
    item = HEAD.replace("\n", "\n  ").rstrip()

    obj = from_text(f"kind: List\napiVersion: v1\nitems:\n- {item}\n  spec: {{image: a}}\n", "m.yaml")

    assert (obj["metadata"]["name"], obj["spec"]) == ("m", {"image": "a"})


def test_models_of_a_list_are_counted() -> None:
    item = HEAD.replace("\n", "\n  ").rstrip()

    with pytest.raises(Failure, match="has 2 ModelDeployments"):
        from_text(f"kind: List\napiVersion: v1\nitems:\n- {item}\n- {item}\n", "m.yaml")


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_file_of_another_state_is_refused_as_by_kubectl(
    call: Callable[..., Result], tmp_path: Path, field: str
) -> None:
    stored = model_deployment("m", "models", GPU, generation=1, uid="u", resourceVersion="7")
    file = tmp_path / "m.yaml"
    file.write_text(json.dumps({**stored, "metadata": {**stored["metadata"], field: "6"}}))
    answers = Answers()
    answers.objects = {"modeldeployments": [stored], "inferenceproviderconfigs": []}

    with serving(answers, tmp_path) as kubeconfig:
        done = call("plan", "-f", str(file), "-n", "models", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, f"remove metadata.{field} from the file" in done.stderr) == (3, True), done.stderr


def test_file_of_the_stored_state_is_not_refused(call: Callable[..., Result], tmp_path: Path) -> None:
    stored = model_deployment("m", "models", GPU, generation=1, uid="u", resourceVersion="7")
    file = tmp_path / "m.yaml"
    file.write_text(json.dumps(stored))
    answers = Answers()
    answers.objects = {"modeldeployments": [stored], "inferenceproviderconfigs": []}

    with serving(answers, tmp_path) as kubeconfig:
        done = call("explain", "-f", str(file), "-n", "models", "--kubeconfig", str(kubeconfig))

    assert "is a conflict" not in done.stderr
    assert done.exit_code == 1, "no provider is registered"
