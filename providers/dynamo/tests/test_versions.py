"""Runtime versions from image tags, release lines from schemas."""

from __future__ import annotations

import pytest

from kubefoundry_dynamo.versions import Runtime, Version, parse, release_line, runtime_of
from kubefoundry_sdk._provider.upstream_kind import Schema

ASSUMED = Version(1, 3, 0)
DIGEST = "@sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("image", "runtime"),
    [
        ("r/vllm-runtime:1.0.1", Runtime(Version(1, 0, 1), from_tag=True)),
        ("r/vllm-runtime:1.4.0-rc1", Runtime(Version(1, 4, 0), from_tag=True)),
        ("host:5000/vllm-runtime:0.7.1", Runtime(Version(0, 7, 1), from_tag=True)),
        ("host:5000/vllm-runtime", Runtime(ASSUMED, from_tag=False)),
        ("r/vllm-runtime:latest", Runtime(ASSUMED, from_tag=False)),
        ("r/vllm-runtime:my-tag-1.0.1", Runtime(ASSUMED, from_tag=False)),
        ("r/vllm-runtime:20261121.1", Runtime(ASSUMED, from_tag=False)),
        ("r/vllm-runtime:v0.9.1-cuda13", Runtime(Version(0, 9, 1), from_tag=False)),
        ("r/vllm-runtime:1.4", Runtime(Version(1, 4, 0), from_tag=False)),
        (f"r/vllm-runtime:1.0.1{DIGEST}", Runtime(Version(1, 0, 1), from_tag=False)),
        (f"r/vllm-runtime{DIGEST}", Runtime(ASSUMED, from_tag=False)),
    ],
)
def test_runtime_of_an_image(image: str, runtime: Runtime) -> None:
    assert runtime_of(image, ASSUMED, ASSUMED) == runtime


@pytest.mark.parametrize(
    ("image", "stated", "runtime"),
    [
        # another company's version, or a date
        ("acme/dynamo-vllm:24.05-py3", None, Runtime(ASSUMED, from_tag=False)),
        ("acme/dynamo-vllm:24.5.0", None, Runtime(ASSUMED, from_tag=False)),
        ("acme/dynamo-vllm:0.3.0", None, Runtime(ASSUMED, from_tag=False)),
        ("acme/dynamo-vllm:1.2.0", None, Runtime(Version(1, 2, 0), from_tag=True)),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.3.0", None, Runtime(Version(0, 3, 0), from_tag=True)),
        ("mirror:5000/ai-dynamo/any:0.3.0", None, Runtime(Version(0, 3, 0), from_tag=True)),
        ("acme/dynamo-vllm:1.2.0", Version(1, 0, 1), Runtime(Version(1, 0, 1), from_tag=False)),
        ("acme/dynamo-vllm:1.2.0", Version(1, 2, 0), Runtime(Version(1, 2, 0), from_tag=True)),
        ("acme/dynamo-vllm:24.5.0", Version(1, 0, 1), Runtime(Version(1, 0, 1), from_tag=False)),
    ],
)
def test_whose_tags_count(image: str, stated: Version | None, runtime: Runtime) -> None:
    assert runtime_of(image, ASSUMED, ASSUMED, stated) == runtime


@pytest.mark.parametrize(
    ("features", "line"),
    [
        (set(), (0, 4)),
        ({"subComponentType"}, (0, 6)),
        ({"subComponentType", "globalDynamoNamespace"}, (0, 7)),
        ({"gpuType", "globalDynamoNamespace"}, (0, 8)),
        ({"observedGeneration", "restart", "gpuType"}, (1, 0)),
        ({"v1beta1", "annotations", "observedGeneration"}, (1, 2)),
        ({"runtimeVersionOverride", "priorityClassName", "v1beta1"}, (1, 4)),
    ],
)
def test_release_line_of_v1alpha1(features: set[str], line: tuple[int, int]) -> None:
    assert release_line(Schema("nvidia.com/v1alpha1", frozenset(features)))[:2] == line


def test_release_line_of_v1beta1() -> None:
    assert release_line(Schema("nvidia.com/v1beta1"))[:2] == (1, 5)


@pytest.mark.parametrize("text", ["", "1.4", "v1.4.0", "1.4.0-rc1", "01.4.0", "1.4.99999"])
def test_only_three_plain_numbers_are_a_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"MAJOR\.MINOR\.PATCH"):
        parse(text)
