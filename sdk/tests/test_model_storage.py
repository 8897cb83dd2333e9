"""`model.storage` in the pods that a provider renders."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk.pod import storage_notes, volume_problems, with_container_settings, with_pod_settings
from kubefoundry_sdk.testing.generated import deployment

WEIGHTS = {"name": "weights", "claimName": "w", "purpose": "modelCache"}
COMPILED = {"name": "compiled", "claimName": "c", "purpose": "compilationCache"}
IMAGE = {"name": "weights", "image": {"reference": "example.com/llama:1"}, "purpose": "modelCache"}
DATA = {"name": "data", "claimName": "d", "mountPath": "/data", "readOnly": True}


def spec_of(
    *volumes: Any, engine: str = "vllm", offline: bool = False, trust: bool = False, **fields: Any
) -> Any:
    storage = {"volumes": list(volumes), "offline": offline}
    settings = {"type": engine, "trustRemoteCode": trust}
    return deployment({"model": {"id": "m", "storage": storage}, "engine": settings, **fields}).spec


def variables(spec: Any, *own: Any) -> dict[str, str]:
    container = with_container_settings({"env": [*own, *spec.env]}, spec)
    assert len({variable["name"] for variable in container["env"]}) == len(container["env"])
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_volumes_are_mounted_before_those_of_the_pod_template() -> None:
    settings = {"name": "settings", "configMap": {"name": "s"}}
    template = {
        "spec": {"volumes": [settings]},
        "container": {"volumeMounts": [{"name": "settings", "mountPath": "/s"}]},
    }
    spec = spec_of(WEIGHTS, DATA, podTemplate=template)

    pod = with_pod_settings({"volumes": [{"name": "own", "emptyDir": {}}]}, spec)
    container = with_container_settings({}, spec)

    assert pod["volumes"] == [
        {"name": "own", "emptyDir": {}},
        {"name": "weights", "persistentVolumeClaim": {"claimName": "w"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d", "readOnly": True}},
        settings,
    ]
    assert container["volumeMounts"] == [
        {"name": "weights", "mountPath": "/model-cache"},
        {"name": "data", "mountPath": "/data"},
        {"name": "settings", "mountPath": "/s"},
    ]


def test_image_is_mounted_with_its_folder() -> None:
    image = {"reference": "example.com/llama:1", "pullPolicy": "Always"}
    spec = spec_of({**DATA, "name": "own", "image": image, "subPath": "models", "claimName": None}, WEIGHTS)

    assert with_pod_settings({}, spec)["volumes"] == [
        {"name": "own", "image": image},
        {"name": "weights", "persistentVolumeClaim": {"claimName": "w"}},
    ]
    assert with_container_settings({}, spec)["volumeMounts"] == [
        {"name": "own", "mountPath": "/data", "subPath": "models"},
        {"name": "weights", "mountPath": "/model-cache"},
    ]


def test_pod_without_engine_has_no_storage() -> None:
    spec = spec_of(IMAGE, COMPILED, offline=True)

    assert with_pod_settings({}, spec, runs_engine=False) == {}
    assert with_container_settings({}, spec, runs_engine=False) == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (spec_of(WEIGHTS), {"HF_HOME": "/model-cache"}),
        (
            spec_of({**WEIGHTS, "mountPath": "/w/"}, engine="llamacpp"),
            {"HF_HOME": "/w", "LLAMA_CACHE": "/w/hub"},
        ),
        (
            spec_of({**WEIGHTS, "readOnly": True}, engine="trtllm", trust=True),
            {"HF_HOME": "/model-cache", "HF_MODULES_CACHE": "/tmp/huggingface-modules"},
        ),
        (spec_of({**WEIGHTS, "readOnly": True}), {"HF_HOME": "/model-cache"}),
        (spec_of({**WEIGHTS, "mountPath": "/$(A)"}), {"HF_HOME": "/$$(A)"}),
        (spec_of(COMPILED), {"VLLM_CACHE_ROOT": "/compilation-cache"}),
        (
            spec_of(COMPILED, engine="trtllm"),
            {
                "TORCHINDUCTOR_CACHE_DIR": "/compilation-cache/inductor",
                "TRITON_CACHE_DIR": "/compilation-cache/triton",
            },
        ),
        (
            spec_of(COMPILED, engine="sglang"),
            {
                "SGLANG_CACHE_DIR": "/compilation-cache",
                "TORCHINDUCTOR_CACHE_DIR": "/compilation-cache/inductor",
                "TRITON_CACHE_DIR": "/compilation-cache/triton",
            },
        ),
        (spec_of(IMAGE), {"HF_HOME": "/model-cache", "HF_HUB_OFFLINE": "1"}),
        (
            spec_of(IMAGE, trust=True),
            {
                "HF_HOME": "/model-cache",
                "HF_HUB_OFFLINE": "1",
                "HF_MODULES_CACHE": "/tmp/huggingface-modules",
            },
        ),
        (spec_of({**IMAGE, "purpose": "custom", "mountPath": "/models"}), {}),
        (spec_of(offline=True, engine="sglang"), {"HF_HUB_OFFLINE": "1"}),
        (spec_of(offline=True, engine="llamacpp"), {"LLAMA_ARG_OFFLINE": "1", "LLAMA_OFFLINE": "1"}),
        (spec_of(DATA), {}),
    ],
)
def test_storage_sets_variables_of_the_engine(spec: Any, expected: dict[str, str]) -> None:
    assert variables(spec, {"name": "A", "value": "b"}) == {"A": "b", **expected}


def test_variables_of_the_user_replace_those_of_the_provider() -> None:
    mine = [{"name": "HF_MODULES_CACHE", "value": "/mine"}]
    spec = spec_of({**WEIGHTS, "readOnly": True}, env=mine, trust=True)

    found = variables(spec, {"name": "HF_HOME", "value": "/cache"})

    assert found == {"HF_HOME": "/model-cache", "HF_MODULES_CACHE": "/mine"}


@pytest.mark.parametrize(
    ("spec", "pods", "notes"),
    [
        (spec_of(), 2, ()),
        (spec_of(WEIGHTS), 1, ()),
        (spec_of(IMAGE), 3, ()),
        (
            spec_of(WEIGHTS, DATA),
            3,
            (
                "3 pods mount PersistentVolumeClaim w, d: pods on several nodes need ReadWriteMany, or ReadOnlyMany "
                "with readOnly.",
            ),
        ),
    ],
)
def test_access_mode_is_noted_when_several_pods_mount_a_claim(
    spec: Any, pods: int, notes: tuple[str, ...]
) -> None:
    assert storage_notes(spec, pods) == notes


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            spec_of({**WEIGHTS, "name": "own"}),
            "Widgets has its own volume own: choose another name in model.storage.volumes",
        ),
        (
            spec_of({**DATA, "mountPath": "/own/"}),
            "Widgets mounts its own volume own at /own: choose another mountPath in model.storage.volumes",
        ),
        *(
            (
                spec_of({**DATA, "mountPath": mount_path}),
                f"volume data would be mounted at {path}, and volumes at / and below /proc are refused, because "
                "hardly any container starts with them: choose another mountPath in model.storage.volumes",
            )
            for mount_path, path in (
                ("/.", "/"),
                ("/data/..", "/"),
                ("/proc", "/proc"),
                ("/data/../proc/1/", "/proc/1"),
            )
        ),
        (
            spec_of(WEIGHTS, {**DATA, "mountPath": "/model-cache"}),
            "volumes weights and data are both mounted at /model-cache: choose another mountPath in "
            "model.storage.volumes",
        ),
        (
            spec_of(
                DATA,
                podTemplate={
                    "spec": {"volumes": [{"name": "a", "emptyDir": {}}]},
                    "container": {"volumeMounts": [{"name": "a", "mountPath": "/data/"}]},
                },
            ),
            "volumes a and data are both mounted at /data: choose another mountPath in model.storage.volumes",
        ),
        (
            spec_of(WEIGHTS, {**DATA, "claimName": WEIGHTS["claimName"]}),
            f"volumes weights and data have the same claim {WEIGHTS['claimName']}, so pods may never start: choose "
            "another claim in model.storage.volumes",
        ),
    ],
)
def test_volume_is_refused_when_it_clashes(spec: Any, problem: str) -> None:
    assert volume_problems(spec, "Widgets", {"own": "/own"}) == [problem]
