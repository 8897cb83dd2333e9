"""`model.storage` is found in claims and variables of pods."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_cli.adopted_storage import forms

HOME = {"name": "HF_HOME", "value": "/w"}
IMAGE = {"reference": "example.com/llama:1"}
CACHE = {"name": "LLAMA_CACHE", "value": "/w/hub"}


def spec_of(env: list[Any], *, engine: str = "vllm", read_only: bool = False, **mount: Any) -> dict[str, Any]:
    claim = {"claimName": "c", **({"readOnly": True} if read_only else {})}
    return {
        "model": {"id": "m"},
        "engine": {"type": engine},
        "env": env,
        "podTemplate": {
            "spec": {"volumes": [{"name": "w", "persistentVolumeClaim": claim}]},
            "container": {"volumeMounts": [{"name": "w", "mountPath": "/w", **mount}]},
        },
    }


def in_image(spec: dict[str, Any]) -> dict[str, Any]:
    template = {**spec["podTemplate"], "spec": {"volumes": [{"name": "w", "image": IMAGE}]}}
    return {**spec, "podTemplate": template}


@pytest.mark.parametrize(
    ("spec", "storage", "env"),
    [
        (
            spec_of([{"name": "A"}, HOME]),
            {"volumes": [{"name": "w", "claimName": "c", "purpose": "modelCache", "mountPath": "/w"}]},
            [{"name": "A"}],
        ),
        (
            spec_of([HOME, CACHE], engine="llamacpp", read_only=True),
            {
                "volumes": [
                    {
                        "name": "w",
                        "claimName": "c",
                        "purpose": "modelCache",
                        "mountPath": "/w",
                        "readOnly": True,
                    }
                ]
            },
            [],
        ),
        (
            spec_of([{"name": "HF_HUB_OFFLINE", "value": "1"}]),
            {"volumes": [{"name": "w", "claimName": "c", "mountPath": "/w"}], "offline": True},
            [],
        ),
        (
            spec_of([HOME], subPath="a"),
            {
                "volumes": [
                    {
                        "name": "w",
                        "claimName": "c",
                        "purpose": "modelCache",
                        "mountPath": "/w",
                        "subPath": "a",
                    }
                ]
            },
            [],
        ),
        (
            in_image(spec_of([HOME, {"name": "HF_HUB_OFFLINE", "value": "1"}])),
            {
                "volumes": [{"name": "w", "image": IMAGE, "purpose": "modelCache", "mountPath": "/w"}],
                "offline": True,
            },
            [],
        ),
    ],
)
def test_storage_is_found_by_variables(
    spec: dict[str, Any], storage: dict[str, Any], env: list[dict[str, Any]]
) -> None:
    found, unchanged = forms(spec)

    assert unchanged == spec
    assert (found["model"], found["env"]) == ({"id": "m", "storage": storage}, env)
    assert found["podTemplate"] == {"spec": {"volumes": []}, "container": {"volumeMounts": []}}


@pytest.mark.parametrize(
    "spec",
    [
        {"model": {"id": "m"}, "engine": {"type": "vllm"}},
        spec_of([]),
        spec_of([HOME], engine="llamacpp"),
        spec_of([HOME], readOnly=True),
        spec_of([{"name": "HF_HOME", "value": "/other"}]),
        spec_of([{"name": "HF_HUB_OFFLINE", "value": "true"}]),
    ],
)
def test_other_spec_has_one_form(spec: dict[str, Any]) -> None:
    assert list(forms(spec)) == [spec]
