"""What explain says is selected is what the selector arrives at in a cluster, where providers refuse one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result
from hypothesis import given, settings

from kubefoundry_cli import upstream
from kubefoundry_cli.providers import installed
from kubefoundry_cli.selection import foreseen, pending, selected, selected_provider, stored, with_spec
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.names import PAUSED_ANNOTATION, provider_finalizer, provider_manager
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_sdk.testing.generated import specs
from kubefoundry_selector.candidate import provider
from kubefoundry_selector.decision import decide
from support.deployments import CPU, GPU, model_deployment
from support.fake_server import Answers, serving
from support.selections import STATED
from support.upstream import standin

PACKAGES = installed()
REGISTERED = [provider({**registration(one), "status": {"ready": True}}) for one in PACKAGES.values()]
QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "qwen-small.yaml"


@settings(max_examples=40)
@given(specs())
def test_selection_is_that_of_a_cluster(spec: dict[str, Any]) -> None:
    obj = _created(spec)

    there = _in_a_cluster(obj)

    assert selected(obj, REGISTERED, PACKAGES).provider == _selected(there)


@settings(max_examples=40)
@given(specs())
def test_foreseen_selection_is_that_of_new_model(spec: dict[str, Any]) -> None:
    obj = _created(spec)

    after = foreseen(obj, REGISTERED, PACKAGES)

    named = (spec.get("provider") or {}).get("name")
    expected = named if named in PACKAGES else None if named else selected(obj, REGISTERED, PACKAGES).provider
    assert selected_provider(after) == expected


@pytest.mark.parametrize(
    ("edit", "provider"),
    [
        pytest.param({"contextLength": 4096}, "kaito", id="an edit that the provider supports"),
        pytest.param({"type": "sglang"}, "dynamo", id="an engine of another provider"),
        pytest.param({"type": "trtllm"}, "dynamo", id="another engine of another provider"),
    ],
)
def test_foreseen_edit_is_handed_over_if_needed(edit: dict[str, Any], provider: str) -> None:
    running = _running("kaito")

    after = foreseen(with_spec(running, {**GPU, "engine": {**GPU["engine"], **edit}}), REGISTERED, PACKAGES)

    assert (selected_provider(after), pending(after)) == (provider, None)


def test_foreseen_edit_stays_if_no_provider_takes_it() -> None:
    others = [one for one in REGISTERED if one.name == "kaito"]

    after = foreseen(with_spec(_running("kaito"), {**GPU, "engine": {"type": "sglang"}}), others, PACKAGES)

    assert selected_provider(after) is None
    assert str(pending(after)).endswith("Provider kaito keeps the model")


def test_foreseen_ignores_pause() -> None:
    running = _running("kaito")
    running["metadata"]["annotations"] = {PAUSED_ANNOTATION: "true"}

    after = foreseen(with_spec(running, {**GPU, "engine": {"type": "sglang"}}), REGISTERED, PACKAGES)

    assert selected_provider(after) == "dynamo"


def _running(provider: str) -> Object:
    """A model that the provider was selected for and serves."""
    there = _created(GPU)
    there["metadata"]["finalizers"] = [provider_finalizer(provider)]
    chosen = {"type": "ProviderSelected", "status": "True", "reason": "AutoSelected", "observedGeneration": 1}
    created = {"type": "ResourceCreated", "status": "True", "reason": "ResourceCreated"}
    status = {
        "provider": {"name": provider, "selectedReason": "default", "resourceName": "m"},
        "conditions": [{**chosen, "message": ""}, {**created, "message": "", "observedGeneration": 1}],
    }
    return {**there, "status": status}


def test_provider_that_refuses_is_left_out(call: Callable[..., Result]) -> None:
    done = call("explain", "--offline", "-f", str(QUICKSTART))

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("no other provider takes it → direct")
    assert "matched, but kaito refuses it" in done.stdout
    assert "kaito: cannot be selected by changing one field; would refuse it if named: " in done.stdout


def test_selection_that_is_stored_says_who_was_left_out() -> None:
    spec = {**CPU, "model": {"id": "org/name/file.gguf"}, "engine": {"type": "llamacpp"}, "image": None}
    there = _in_a_cluster(_created({key: value for key, value in spec.items() if value}))

    kept = stored(there)

    assert kept is not None
    assert str(kept).startswith("direct is selected: no other provider takes it → direct")
    assert str(kept).endswith("(left out, because they refused it: kaito)")
    assert stored({**there, "metadata": {**there["metadata"], "generation": 2}}) is None


@pytest.mark.parametrize(
    ("named", "said"),
    [
        pytest.param("nosuch", "nosuch is not registered (registered: direct, dynamo", id="nobody"),
        pytest.param("kaito", "kaito refuses it: KAITO", id="one that refuses"),
    ],
)
def test_named_provider_that_cannot_run_the_model_is_an_error(
    call: Callable[..., Result], file: Callable[..., str], named: str, said: str
) -> None:
    spec = {**GPU, "engine": {"type": "sglang"}, "provider": {"name": named}}

    done = call("explain", "--offline", "-f", file(spec))

    assert (done.exit_code, said in done.stdout) == (1, True), done.stdout


def test_explain_fails_when_stored_provider_refuses(call: Callable[..., Result], tmp_path: Path) -> None:
    """The cluster selected KAITO with a package of another release, or before an edit of it."""
    answers, obj = Answers(), _created({**GPU, "engine": {"type": "sglang"}})
    chosen = {"type": "ProviderSelected", "status": "True", "observedGeneration": 1}
    status = {"provider": {"name": "kaito"}, "conditions": [chosen]}
    answers.objects = {
        "modeldeployments": [{**obj, "status": status}],
        "inferenceproviderconfigs": [registration(PACKAGES["kaito"])],
        "customresourcedefinitions": [standin("kaito").document],
    }

    with serving(answers, tmp_path) as kubeconfig:
        done = call("explain", "m", "--kubeconfig", str(kubeconfig))
        planned = call("plan", "m", "--provider", "kaito", "--kubeconfig", str(kubeconfig))

    assert "kaito refuses it: KAITO does not support sglang" in done.stdout, done.stderr
    assert (done.exit_code, planned.exit_code) == (1, 1)


LEAVING: Final = {
    "deletionTimestamp": "2026-02-04T10:00:00Z",
    "finalizers": ["kubefoundry.ai/kaito-provider"],
}
HELD: Final = (
    "is being deleted, held by kubefoundry.ai/kaito-provider (Waiting for Workspace models/m to be deleted)"
)


@pytest.fixture
def leaving() -> Answers:
    """A cluster with a model that is being deleted."""
    answers, obj = Answers(), _created({**GPU, "provider": {"name": "kaito"}})
    obj["metadata"] |= LEAVING
    status = {
        "phase": "Terminating",
        "message": "Waiting for Workspace models/m to be deleted",
        "provider": {"name": "kaito", "resourceName": "m", "resourceAPIVersion": "kaito.sh/v1beta1"},
    }
    answers.objects = {
        "modeldeployments": [{**obj, "status": status}],
        "inferenceproviderconfigs": [registration(PACKAGES["kaito"])],
        "customresourcedefinitions": [standin("kaito").document],
    }
    return answers


def test_explain_begins_with_the_deletion(
    call: Callable[..., Result], tmp_path: Path, leaving: Answers
) -> None:
    with serving(leaving, tmp_path) as kubeconfig:
        done = call("explain", "m", "--kubeconfig", str(kubeconfig))
        document = call("explain", "m", "-o", "json", "--kubeconfig", str(kubeconfig))

    assert done.stdout.splitlines()[0] == f"m {HELD}"
    assert json.loads(document.stdout)["deletion"] == HELD


def test_explain_of_standing_model_mentions_no_deletion(
    call: Callable[..., Result], tmp_path: Path, leaving: Answers
) -> None:
    del leaving.objects["modeldeployments"][0]["metadata"]["deletionTimestamp"]

    with serving(leaving, tmp_path) as kubeconfig:
        done = call("explain", "m", "--kubeconfig", str(kubeconfig))
        document = call("explain", "m", "-o", "json", "--kubeconfig", str(kubeconfig))

    assert done.stdout.startswith("kaito is named by spec.provider.name")
    assert json.loads(document.stdout)["deletion"] is None


@pytest.mark.parametrize(
    "command",
    [("plan", "m"), ("scale", "m", "2"), ("pause", "m"), ("reselect", "m", "--yes"), ("eject", "m", "--yes")],
)
def test_edit_of_deleted_model_names_its_holder(
    call: Callable[..., Result], tmp_path: Path, leaving: Answers, command: tuple[str, ...]
) -> None:
    with serving(leaving, tmp_path) as kubeconfig:
        done = call(*command, "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, HELD in done.stderr) == (1, True), done.output


def test_explain_and_plan_agree_on_unregistered_provider(call: Callable[..., Result], tmp_path: Path) -> None:
    answers, obj = Answers(), _created({**GPU, "provider": {"name": "nosuch"}})
    answers.objects = {
        "modeldeployments": [{**obj, "status": {"provider": {"name": "kaito"}}}],
        "inferenceproviderconfigs": [registration(PACKAGES["kaito"])],
        "customresourcedefinitions": [standin("kaito").document],
        **{plural: [] for plural in ("workspaces", "configmaps", "services", "events")},
    }

    with serving(answers, tmp_path) as kubeconfig:
        explained = call("explain", "m", "--kubeconfig", str(kubeconfig))
        planned = call("plan", "m", "--kubeconfig", str(kubeconfig))

    said = "nosuch is not registered (registered: kaito), so provider kaito keeps the model, and applies its edits"
    assert said in explained.stdout, explained
    assert "provider kaito keeps the model, and applies this edit" in planned.stderr
    assert explained.exit_code == 1


def test_namespace_option_that_contradicts_the_file_is_refused(
    call: Callable[..., Result], file: Callable[..., str], tmp_path: Path
) -> None:
    with serving(Answers(), tmp_path) as kubeconfig:
        for command in ("plan", "explain"):
            done = call(command, "-f", file(GPU), "-n", "other", "--kubeconfig", str(kubeconfig))

            said = (
                "ModelDeployment 'm' of the file is in namespace models, not in other: correct one of the two"
            )
            assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_silent_provider_is_named_by_plan_and_explain(call: Callable[..., Result], tmp_path: Path) -> None:
    answers, obj = Answers(), _created({**GPU, "image": "i", "provider": {"name": "kaito"}})
    status = {
        "ready": True,
        "lastHeartbeat": "2026-01-01T00:00:00Z",
        "version": f"kaito-provider:v{version_of('kubefoundry-provider-kaito')}",
    }
    answers.objects = {
        "modeldeployments": [obj],
        "inferenceproviderconfigs": [{**registration(PACKAGES["kaito"]), "status": status}],
        "customresourcedefinitions": [standin("kaito").document],
        **{plural: [] for plural in ("workspaces", "configmaps", "services", "events")},
    }

    with serving(answers, tmp_path) as kubeconfig:
        options = ("--kubeconfig", str(kubeconfig))
        planned, explained, listed = (
            call(*command, *options) for command in (("plan", "m"), ("explain", "m"), ("provider", "list"))
        )

    for done in (planned, explained):
        assert "note: provider kaito has not reported for" in done.stderr, done
        assert "nothing changes until it does" in done.stderr
    assert listed.stdout.splitlines()[1].split()[:2] == ["kaito", "Unknown"]


def test_explain_fails_without_crd_of_named_provider(call: Callable[..., Result], tmp_path: Path) -> None:
    answers = Answers()
    answers.objects = {
        "modeldeployments": [_created({**GPU, "provider": {"name": "kaito"}})],
        "inferenceproviderconfigs": [registration(PACKAGES["kaito"])],
        "customresourcedefinitions": [],
    }

    with serving(answers, tmp_path) as kubeconfig:
        done = call("explain", "m", "--kubeconfig", str(kubeconfig))

    assert "kaito refuses it: KAITO is not installed: CRD workspaces.kaito.sh not found" in done.stdout
    assert done.exit_code == 1


def test_programs_read_who_was_left_out(call: Callable[..., Result]) -> None:
    done = call("explain", "--offline", "-f", str(QUICKSTART), "-o", "json")

    reported = json.loads(done.stdout)
    assert (reported["decision"]["provider"], reported["selected"], reported["named"]) == (
        "direct",
        None,
        None,
    )


def _in_a_cluster(obj: Object) -> Object:
    """The object once the selector has nothing more to say: each provider that it selects refuses, or accepts."""
    validated = {"type": "Validated", "status": "True", "observedGeneration": 1}
    obj, before = {**obj, "status": {"conditions": [validated]}}, None
    for _ in range(len(PACKAGES) + 2):
        decided = decide(obj, REGISTERED)
        if decided is None or decided == before:
            return obj
        conditions, meta = [validated, *decided["conditions"]], obj["metadata"]
        name = (decided.get("provider") or {}).get("name")
        if name and (said := upstream.problems(PACKAGES[name], obj, None)):
            refusal = {"type": "ProviderCompatible", "status": "False", "observedGeneration": 1}
            conditions.append({**refusal, "message": "; ".join(said)})
            writer = {"manager": provider_manager(name), "subresource": "status", "operation": "Apply"}
            stated = {"f:conditions": {'k:{"type":"ProviderCompatible"}': STATED}}
            meta = {**meta, "managedFields": [{**writer, "fieldsV1": {"f:status": stated}}]}
        obj, before = {**obj, "metadata": meta, "status": {**decided, "conditions": conditions}}, decided
    raise AssertionError(f"no end: {obj['status']}")


def _selected(obj: Object) -> str | None:
    [condition] = [one for one in obj["status"]["conditions"] if one["type"] == "ProviderSelected"]
    return obj["status"]["provider"]["name"] if condition["status"] == "True" else None


def _created(spec: dict[str, Any]) -> Object:
    made = model_deployment("m", "models", spec)
    return {**made, "metadata": {**made["metadata"], "uid": "u", "generation": 1}, "spec": default(spec)}
