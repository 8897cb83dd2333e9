"""The provider's functions against the reduced CRD, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_conformance.main import main
from kubefoundry_kserve.provider import provider
from kubefoundry_sdk import Schema, manifest, supports
from kubefoundry_sdk.testing import deployment

HERE = Path(__file__).resolve().parents[1]
KSERVE = provider()
SCHEMA = Schema("serving.kserve.io/v1alpha1", frozenset({"labels"}))
GPU: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 2}},
}


def test_functions_pass_the_conformance_kit(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--crd", str(HERE / "tests/llminferenceservices.crd.yaml"), "--cases", str(HERE / "cases.yaml")]

    assert main(["provider", "--functions", "kserve", "--examples", "25", *files]) == 0, (
        capsys.readouterr().out
    )


def test_spec_is_rendered() -> None:
    spec = {**GPU, "engine": {"type": "vllm", "contextLength": 4096, "args": {"seed": "$(SEED)"}}}

    main = KSERVE.render(deployment(spec), SCHEMA).main

    assert main["spec"]["model"] == {"uri": "hf://org/model", "name": "model"}
    [container] = main["spec"]["template"]["containers"]
    assert container["command"] == ["vllm", "serve", "/mnt/models"]
    assert container["args"] == [
        *("--served-model-name", "model", "--port", "8000", "--max-model-len", "4096"),
        *("--tensor-parallel-size", "2", "--seed", "$$(SEED)"),
    ]
    assert "image" not in container


@pytest.mark.parametrize(
    ("spec", "schema", "problem"),
    [
        ({**GPU, "secrets": {"huggingFaceToken": "t"}}, SCHEMA, "KServe downloads the model before"),
        ({**GPU, "model": {"source": "custom"}, "image": "i"}, SCHEMA, "KServe downloads the model itself"),
        (
            {**GPU, "podTemplate": {"metadata": {"labels": {"kserve.io/component": "x"}}}},
            SCHEMA,
            "KServe finds its pods by kserve.io/component",
        ),
        (
            {**GPU, "podTemplate": {"metadata": {"labels": {"team": "x"}}}},
            Schema("serving.kserve.io/v1alpha1"),
            "This release of KServe has no place for podTemplate",
        ),
    ],
)
def test_unsupported_spec_is_refused(spec: dict[str, Any], schema: Schema, problem: str) -> None:
    [reported] = supports(KSERVE, deployment(spec), schema)

    assert reported.startswith(problem)


def test_manifest_is_generated_from_provider() -> None:
    documents = yaml.safe_load_all((HERE / "manifest.yaml").read_text())
    stored = [document for document in documents if document]
    [image] = [
        document["spec"]["template"]["spec"]["containers"][0]["image"]
        for document in stored
        if document["kind"] == "Deployment"
    ]

    assert stored == manifest(KSERVE, image)
