"""Tests each field of lls-provider-spec.yaml that can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from llamastack_providers import package_spec
from support.provider_images import spec


@pytest.mark.accept("FR-003")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata__version": "1.0.0-rc.1+build.5"},
        {"spec__packageName": "my_org.custom_vllm"},
        {"spec__dependencyWheels": ["packages/a.whl"]},
        {"spec__dependencyWheels": []},
        {"metadata__description": "what it does"},
        *(
            {"spec__api": api}
            for api in ("inference", "datasetio", "vector_io", "post_training", "tool_runtime")
        ),
        {"spec__providerType": "inline::a-1"},
        {"spec__service": {}},
        {"spec__service": {"configKey": "base_url", "transports": ["tcp"], "required": False}},
        {"spec__service": {"health": "/healthz", "later": "unknown keys are allowed"}},
    ],
    ids=str,
)
def test_package_spec_accepts_valid_file(changes: dict[str, Any]) -> None:
    assert list(package_spec.problems(spec(**changes))) == []


@pytest.mark.accept("FR-003", "FR-025")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"apiVersion": "llamastack.io/v1"}, "apiVersion"),
        ({"kind": None}, "kind"),
        ({"metadata": None}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"spec": "x"}, "spec"),
        *(({f"metadata__{key}": None}, f"metadata.{key}") for key in ("name", "version", "vendor")),
        ({"metadata__name": ""}, "metadata.name"),
        ({"metadata__version": 1.0}, "metadata.version"),
        ({"metadata__version": "1.0"}, "metadata.version"),
        ({"metadata__version": "1.0.0\n"}, "metadata.version"),
        ({"spec__service": "yes"}, "spec.service"),
        *(
            ({"spec__service": {"configKey": key}}, "spec.service.configKey")
            for key in ("", "base-url", "class", 1, None, ["url"], "u" * 1025)
        ),
        *(
            ({"spec__service": {"transports": transports}}, "spec.service.transports")
            for transports in ([], "unix", None, ["unix", "udp"], [["unix"]])
        ),
        *(({"spec__service": {"health": path}}, "spec.service.health") for path in ("healthz", 1, None)),
        *(({"spec__service": {"required": value}}, "spec.service.required") for value in ("yes", 1, None)),
        *(
            ({f"spec__{key}": None}, f"spec.{key}")
            for key in ("packageName", "providerType", "api", "wheelPath")
        ),
        *(
            ({"spec__packageName": name}, "spec.packageName")
            for name in ("my-org.x", "a..b", "1a", "a.class", "a b")
        ),
        *(
            ({"spec__providerType": kind}, "spec.providerType")
            for kind in (
                "local::x",
                "remote:x",
                "remote::X",
                "remote::a_b",
                "remote::x\n",
                "xremote::x",
                "remote::",
            )
        ),
        *(({"spec__api": api}, "spec.api") for api in ("telemetry", "vectorIo", "Inference")),
        ({"spec__wheelPath": ["x"]}, "spec.wheelPath"),
        ({"spec__dependencyWheels": "x"}, "spec.dependencyWheels"),
        ({"spec__dependencyWheels": [1]}, "spec.dependencyWheels"),
        ({"spec__dependencyWheels": [""]}, "spec.dependencyWheels"),
    ],
    ids=str,
)
def test_package_spec_reports_invalid_field(changes: dict[str, Any], field: str) -> None:
    problems = list(package_spec.problems(spec(**changes)))

    assert [problem.partition(":")[0] for problem in problems] == [field]


@pytest.mark.accept("FR-003")
@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_package_spec_refuses_non_mapping(value: Any) -> None:
    assert len(list(package_spec.problems(value))) == 1


def test_package_spec_reports_all_problems() -> None:
    problems = list(package_spec.problems({"metadata": {}, "spec": {}}))

    assert len(problems) == 2 + 3 + 4
