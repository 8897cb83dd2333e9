"""What the pods are beside their command line: rollouts, time to load and to drain, volumes, images."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_direct.provider import provider
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

SCHEMA = Schema("apps/v1")
CPU: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": "llamacpp"}}


def rendered(spec: dict[str, Any], settings: Settings | None = None) -> Rendered:
    return provider(settings or Settings()).render(deployment(spec), SCHEMA)


def on_gpus(count: int, replicas: int = 1, **overrides: Any) -> dict[str, Any]:
    return {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm"},
        "resources": {"gpu": {"count": count}},
        "scaling": {"replicas": replicas},
        "provider": {"name": "direct", "overrides": overrides},
    }


def stored(spec: dict[str, Any]) -> dict[str, Any]:
    volume = {"name": "weights", "claimName": "w", "purpose": "modelCache"}
    return {**spec, "model": {**spec["model"], "storage": {"volumes": [volume]}}}


def templated(spec: dict[str, Any], mode: str) -> dict[str, Any]:
    template = {"size": "1Gi", "accessMode": mode}
    volume = {"name": "weights", "claimTemplate": template, "purpose": "modelCache"}
    return {**spec, "model": {**spec["model"], "storage": {"volumes": [volume]}}}


def container(render: Rendered) -> dict[str, Any]:
    main_container: dict[str, Any] = render.main["spec"]["template"]["spec"]["containers"][0]
    return main_container


@pytest.mark.parametrize(
    ("spec", "surge", "unavailable"),
    [
        pytest.param(CPU, 1, 0, id="CPU"),
        pytest.param({**CPU, "scaling": {"replicas": 3}}, 1, 0, id="CPU, several"),
        pytest.param(on_gpus(1), 1, 0, id="the only one on a GPU"),
        pytest.param(on_gpus(2, replicas=2), 0, 1, id="several on GPUs"),
        pytest.param(on_gpus(1, rollout="replace"), 0, 1, id="stated"),
        pytest.param(on_gpus(2, replicas=2, rollout="surge"), 1, 0, id="stated for several"),
        pytest.param(on_gpus(1, cacheClaim="weights"), 0, 1, id="the only one with a claim"),
        pytest.param(on_gpus(0, replicas=3, cacheClaim="weights"), 0, 1, id="CPU, several with a claim"),
        pytest.param(on_gpus(1, cacheClaim="weights", rollout="surge"), 1, 0, id="stated with a claim"),
        pytest.param(templated(on_gpus(1), "ReadWriteOnce"), 0, 1, id="a created claim of one node"),
        pytest.param(templated(on_gpus(1), "ReadWriteMany"), 1, 0, id="a created claim of all nodes"),
    ],
)
def test_rollout_keeps_serving_where_it_can(spec: dict[str, Any], surge: int, unavailable: int) -> None:
    assert rendered(spec).main["spec"]["strategy"]["rollingUpdate"] == {
        "maxSurge": surge,
        "maxUnavailable": unavailable,
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (CPU, ""),
        (on_gpus(2, replicas=2), ""),
        (on_gpus(2), "needs 2 GPUs free for a moment"),
        (on_gpus(1, rollout="replace"), "nothing serves meanwhile"),
        (
            on_gpus(1, cacheClaim="w"),
            "set provider.overrides.rollout to surge if all claims are ReadWriteMany",
        ),
        (on_gpus(1, cacheClaim="w", rollout="surge"), "needs PersistentVolumeClaim w to be ReadWriteMany"),
        (on_gpus(1, cacheClaim="w", rollout="replace"), "nothing serves meanwhile"),
        (stored(on_gpus(1)), "PersistentVolumeClaim w may be ReadWriteOnce"),
        (templated(on_gpus(1), "ReadWriteOnce"), "PersistentVolumeClaim m-weights may be ReadWriteOnce"),
        (templated(on_gpus(1), "ReadWriteMany"), "needs 1 GPU free for a moment"),
        (stored(on_gpus(1, cacheClaim="c")), "PersistentVolumeClaim c, w may be ReadWriteOnce"),
        (stored(on_gpus(1, rollout="surge")), "w to be ReadWriteMany, or ReadOnlyMany with readOnly"),
        (stored(on_gpus(1, replicas=2)), "2 pods mount PersistentVolumeClaim w: pods on several nodes"),
    ],
)
def test_what_an_update_needs_is_said(spec: dict[str, Any], words: str) -> None:
    notes = " ".join(rendered(spec).notes)

    assert words in notes
    assert bool(words) == bool(notes)


def test_rollout_has_the_time_that_loading_and_draining_take() -> None:
    spec = rendered(on_gpus(1, startupSeconds=7200, drainSeconds=600)).main["spec"]
    probe = spec["template"]["spec"]["containers"][0]["startupProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] == 7200
    assert spec["progressDeadlineSeconds"] > 7200 + 600


def test_pod_drains_before_its_server_hears_of_the_end() -> None:
    pod = rendered(on_gpus(1, drainSeconds=90)).main["spec"]["template"]["spec"]

    assert pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "90"]
    assert pod["terminationGracePeriodSeconds"] > 90


def test_no_drain_is_no_hook() -> None:
    assert "lifecycle" not in container(rendered(on_gpus(1, drainSeconds=0)))


def test_users_variables_take_the_place_of_ours() -> None:
    env = container(rendered({**CPU, "env": [{"name": "HF_HOME", "value": "/mine"}]}))["env"]

    assert [item["value"] for item in env if item["name"] == "HF_HOME"] == ["/mine"]
    assert len({item["name"] for item in env}) == len(env)


def test_shared_memory_is_what_the_engine_needs() -> None:
    def mounts(spec: dict[str, Any]) -> list[str]:
        return [mount["mountPath"] for mount in container(rendered(spec))["volumeMounts"]]

    assert "/dev/shm" in mounts(on_gpus(1))
    assert "/dev/shm" not in mounts(CPU)


@pytest.mark.parametrize(
    ("engine", "gpu", "settings", "image"),
    [
        ("llamacpp", None, Settings(), "ghcr.io/ggml-org/llama.cpp:server-b9603"),
        ("llamacpp", "nvidia.com/gpu", Settings(), "ghcr.io/ggml-org/llama.cpp:server-cuda12-b9603"),
        ("vllm", "nvidia.com/gpu", Settings(), "vllm/vllm-openai:v0.18.0"),
        ("vllm", "amd.com/gpu", Settings({"vllm": "rocm/vllm:1"}), "rocm/vllm:1"),
        ("llamacpp", None, Settings({"llamacpp": "own:1"}), "own:1"),
        ("llamacpp", None, Settings({"llamacpp": "own:1"}, "r.example/kf"), "own:1"),
        ("llamacpp", None, Settings({}, "r.example/kf"), "r.example/kf/ggml-org/llama.cpp:server-b9603"),
        ("vllm", "nvidia.com/gpu", Settings({}, "r.example/kf"), "r.example/kf/vllm/vllm-openai:v0.18.0"),
    ],
)
def test_default_image_fits_the_hardware(
    engine: str, gpu: str | None, settings: Settings, image: str
) -> None:
    resources = {"resources": {"gpu": {"count": 1, "type": gpu}}} if gpu else {}

    render = rendered({"model": {"id": "org/m"}, "engine": {"type": engine}, **resources}, settings)

    assert (render.image, container(render)["image"]) == (image, image)


def test_service_and_deployment_find_the_same_pods() -> None:
    render = rendered(CPU)
    [service] = render.helpers
    labels = render.main["spec"]["template"]["metadata"]["labels"]

    assert service["spec"]["selector"] == render.main["spec"]["selector"]["matchLabels"]
    assert service["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize("name", ["m.x", "1m", "m" * 57, "-m"])
def test_name_that_no_service_can_have_is_refused(name: str) -> None:
    [problem] = check(provider(Settings()), deployment(CPU, name), SCHEMA).problems

    assert name in problem and "create it under another name" in problem


def test_annotation_that_an_engine_reads_is_ours() -> None:
    stated = {"metadata": {"annotations": {"kubefoundry.ai/engine-options": "mine"}}}

    problems = check(provider(Settings()), deployment({**CPU, "podTemplate": stated}), SCHEMA).problems

    assert len(problems) == 1 and "sets pod annotation kubefoundry.ai/engine-options itself" in problems[0]


def test_label_that_pods_are_found_by_is_ours() -> None:
    labels = {"podTemplate": {"metadata": {"labels": {"kubefoundry.ai/model-deployment": "other"}}}}

    [problem] = check(provider(Settings()), deployment({**CPU, **labels}), SCHEMA).problems

    assert "kubefoundry.ai/model-deployment" in problem


@pytest.mark.parametrize(
    "overrides",
    [
        {"rollout": "fast"},
        {"drainSeconds": -1},
        {"startupSeconds": "3600"},
        {"cacheClaim": "No Claim"},
        {"command": []},
        {"runAsUser": -1},
        {"runAsUser": "nobody"},
        {"sharedMemory": "much"},
    ],
)
def test_overrides_that_nobody_can_obey_are_refused(overrides: dict[str, Any]) -> None:
    assert check(provider(Settings()), deployment(on_gpus(1, **overrides)), SCHEMA).problems
