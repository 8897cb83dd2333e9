"""`kubefoundry images` prints every image, and the reference of its copy in a registry."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kubefoundry_cli.install import bundle
from kubefoundry_cli.main import kubefoundry
from kubefoundry_sdk._api.images import in_registry

REGISTRY = "registry.example.com/kf"


@pytest.mark.parametrize(
    ("image", "copy"),
    [
        ("kubefoundry/core:0.2.0", "core:0.2.0"),
        ("vllm/vllm-openai:v1", "vllm/vllm-openai:v1"),
        ("ghcr.io/ggml-org/llama.cpp:server", "ggml-org/llama.cpp:server"),
        ("localhost:5000/a/b@sha256:00", "a/b@sha256:00"),
        ("python:3.11", "python:3.11"),
    ],
)
def test_copy_has_the_path_of_the_image(image: str, copy: str) -> None:
    assert in_registry(image, f"{REGISTRY}/") == f"{REGISTRY}/{copy}"


def test_copies_of_all_images_are_distinct() -> None:
    images = bundle.images()

    assert len({in_registry(image, REGISTRY) for image in images}) == len(images)


def test_images_prints_one_reference_a_line_with_names() -> None:
    result = CliRunner().invoke(kubefoundry, ["images", "-o", "name", "--registry", REGISTRY])

    assert result.exit_code == 0
    assert result.output.splitlines() == [in_registry(image, REGISTRY) for image in bundle.images()]


def test_images_prints_image_reference_and_use_as_json() -> None:
    result = CliRunner().invoke(kubefoundry, ["images", "-o", "json"])

    assert {
        "image": "kubefoundry/core:0.2.0",
        "reference": "kubefoundry/core:0.2.0",
        "for": "core",
    } in json.loads(result.output)


def test_images_prints_a_table_with_copies_for_a_registry() -> None:
    result = CliRunner().invoke(kubefoundry, ["images", "--registry", REGISTRY])

    head, *rows = result.output.splitlines()
    assert head.split() == ["IMAGE", "COPY", "FOR"]
    assert len(rows) == len(bundle.images())
