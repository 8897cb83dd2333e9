"""What `explain` and `plan` say about a model that the selector has not decided on, its namespace, and settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.names import PAUSED_ANNOTATION
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.registration import registration
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.upstream import standin

PACKAGES = installed()


def _created(spec: dict[str, Any]) -> Object:
    return model_deployment("m", "models", default(spec), uid="u", generation=1)


@pytest.mark.parametrize(
    ("stated", "option", "code"),
    [
        (None, "edge-1", 0),
        ("edge-1", "edge-1", 0),
        ("edge-1", None, 0),
        ("edge-1", "other", 2),
        (None, None, 0),
    ],
)
def test_offline_explanation_is_of_the_namespace(
    call: Callable[..., Result], tmp_path: Path, stated: str | None, option: str | None, code: int
) -> None:
    obj = model_deployment("m", stated or "", GPU)
    if stated is None:
        del obj["metadata"]["namespace"]
    (path := tmp_path / "m.yaml").write_text(json.dumps(obj))
    options = ("-n", option) if option else ()

    done = call("explain", "-f", str(path), "--offline", "-o", "json", *options)

    assert done.exit_code == code, done.stderr
    if code:
        assert "of the file is in namespace edge-1, not in other: correct one of the two" in done.stderr
    else:
        assert json.loads(done.stdout)["namespace"] == (stated or option or "default")


@pytest.mark.parametrize("annotations", [{PAUSED_ANNOTATION: "true"}, {}], ids=["paused", "not paused"])
@pytest.mark.parametrize(
    ("status", "name"),
    [({}, "dynamo"), ({"provider": {"name": "kaito"}}, "kaito")],
    ids=["new", "edited"],
)
def test_explain_claims_no_selection_before_the_selector(
    call: Callable[..., Result], tmp_path: Path, annotations: dict[str, str], status: Object, name: str
) -> None:
    answers, obj = Answers(), _created(GPU)
    obj["metadata"]["annotations"] = annotations
    running = {"status": {"ready": True}}
    answers.objects = {
        "modeldeployments": [{**obj, "status": status}],
        "inferenceproviderconfigs": [{**registration(package), **running} for package in PACKAGES.values()],
        "customresourcedefinitions": [standin(each).document for each in ("kaito", "dynamo", "kuberay")],
    }

    with serving(answers, tmp_path) as kubeconfig:
        options = ("--kubeconfig", str(kubeconfig))
        done = call("explain", "m", *options)
        document = json.loads(call("explain", "m", "-o", "json", *options).stdout)
        edited = call("explain", "m", "--set", "engine.contextLength=4096", *options)

    why = (
        "paused: nothing changes until kubefoundry resume m"
        if annotations
        else "the selector has not decided yet"
    )
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"no provider is selected for this spec: {why}"), done.stdout
    assert f"after that, {name} is selected: " in first
    assert (document["selected"], document["pending"].startswith(why)) == (None, True)
    after = "after this edit and a resume, " if annotations else "after this edit, "
    assert edited.stdout.startswith(f"{after}{name} is selected"), edited.stdout


@pytest.mark.parametrize(
    ("observed", "why"),
    [(1, "PersistentVolumeClaim m-weights is being created"), (0, "the selector has not decided yet")],
    ids=["this generation", "earlier generation"],
)
def test_explain_names_the_obstacle_before_the_selector(
    call: Callable[..., Result], tmp_path: Path, observed: int, why: str
) -> None:
    answers = Answers()
    validated = {
        "type": "Validated",
        "status": "False",
        "reason": "ClaimNotReady",
        "message": "PersistentVolumeClaim m-weights is being created",
        "observedGeneration": observed,
    }
    answers.objects = {
        "modeldeployments": [{**_created(GPU), "status": {"conditions": [validated]}}],
        "inferenceproviderconfigs": [
            {**registration(package), "status": {"ready": True}} for package in PACKAGES.values()
        ],
        "customresourcedefinitions": [standin(each).document for each in ("kaito", "dynamo", "kuberay")],
    }

    with serving(answers, tmp_path) as kubeconfig:
        done = call("explain", "m", "--kubeconfig", str(kubeconfig))

    assert done.stdout.startswith(
        f"no provider is selected for this spec: {why}; after that, dynamo is selected"
    )


def test_plan_uses_the_defaults_that_the_provider_reports(
    call: Callable[..., Result], tmp_path: Path
) -> None:
    class Refusing(Answers):
        def to(self, path: str) -> tuple[int, Any]:
            if "/deployments/" in path:
                return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
            return super().to(path)

    answers = Refusing()
    undiscovered = {"type": "SettingsDiscovered", "status": "False", "reason": "NotDiscovered", "message": ""}
    status: dict[str, Any] = {
        "ready": True,
        "version": f"dynamo-provider:v{version_of('kubefoundry-provider-dynamo')}",
    }
    config = {**registration(PACKAGES["dynamo"]), "status": status}
    answers.objects = {
        "modeldeployments": [_created({**GPU, "provider": {"name": "dynamo"}})],
        "inferenceproviderconfigs": [config],
        "customresourcedefinitions": [standin("dynamo").document],
        **{plural: [] for plural in ("dynamographdeployments", "configmaps", "services", "events")},
    }

    with serving(answers, tmp_path) as kubeconfig:
        unreported = call("plan", "m", "--kubeconfig", str(kubeconfig))
        status["conditions"] = [undiscovered]
        reported = call("plan", "m", "--kubeconfig", str(kubeconfig))

    assert (unreported.exit_code, reported.exit_code) == (0, 0), unreported.stderr
    assert "its settings are unknown" in unreported.stderr
    assert "its settings are unknown" not in reported.stderr


def test_plan_of_a_new_model_claims_no_keeper(
    call: Callable[..., Result], file: Callable[..., str], tmp_path: Path
) -> None:
    answers, running = Answers(), {"status": {"ready": True}}
    answers.objects = {
        "inferenceproviderconfigs": [{**registration(package), **running} for package in PACKAGES.values()],
    }
    name = file({**GPU, "resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}}})

    with serving(answers, tmp_path) as kubeconfig:
        planned = call("plan", "-f", name, "--kubeconfig", str(kubeconfig))
        explained = call("explain", "-f", name, "--kubeconfig", str(kubeconfig))

    assert (planned.exit_code, explained.exit_code) == (1, 1)
    assert "no provider is selected for ModelDeployment 'm'" in planned.stderr
    assert "keeps the model" not in planned.stderr
    assert explained.stdout.splitlines()[0] in planned.stderr
