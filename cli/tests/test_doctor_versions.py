"""`kubefoundry doctor`: versions of components, and CRDs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubefoundry_cli.checks import versions
from kubefoundry_cli.install import bundle


def deployment(name: str, image: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}}


@pytest.mark.parametrize(
    ("image", "state", "said"),
    [
        pytest.param("kubefoundry/core:0.2.0", "", "", id="the same"),
        pytest.param("localhost:5000/core:v0.2.0@sha256:0", "", "", id="the same, with registry and digest"),
        pytest.param(
            "kubefoundry/core:0.1.9", "wrong", "is older than this command line (0.2.0)", id="older"
        ),
        pytest.param("x/core:0.10.0", "wrong", "is newer than this command line (0.2.0)", id="newer"),
        pytest.param("localhost:5000/core", "unknown", "cannot be read off ''", id="without a tag"),
        pytest.param("kubefoundry/core:latest", "unknown", "cannot be read off 'latest'", id="no version"),
    ],
)
def test_version_of_core_is_compared(image: str, state: str, said: str) -> None:
    found = list(versions.of_images([deployment("kubefoundry-core", image)], "0.2.0"))

    assert [one.state for one in found] == ([state] if state else [])
    assert all(said in one.text for one in found)


@pytest.mark.parametrize(
    ("name", "reported", "said"),
    [
        pytest.param("kaito", "kaito-provider:v0.2.0", [], id="the same"),
        pytest.param("kaito", "kaito-provider:v0.1.0", ["kubefoundry provider upgrade kaito"], id="older"),
        pytest.param("kaito", "kaito-provider:v1.0.0", ["install the command line of"], id="newer"),
        pytest.param(
            "acme", "acme-provider:v0.1.0", ["apply the manifest of its release 0.2.0"], id="foreign"
        ),
        pytest.param("other", "other-provider:v9", [], id="without a package here"),
        pytest.param("kaito", None, [], id="never reported"),
    ],
)
def test_versions_of_providers_are_compared(name: str, reported: str | None, said: list[str]) -> None:
    config = {"metadata": {"name": name}, "status": {"version": reported}}

    found = list(versions.of_providers([config], {"kaito": "0.2.0", "acme": "0.2.0"}))

    assert [part in one.text for part, one in zip(said, found, strict=True)] == [True] * len(said)


def test_crds_are_compared_by_their_versions_and_fields() -> None:
    ours = bundle.crds()
    older, newer, without = (copy.deepcopy(ours[0]) for _ in range(3))
    for version in older["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec.pop(next(iter(spec)))
    for version in newer["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["fresh"] = {"type": "string"}
    del without["spec"]["versions"][1]

    same, [less], [more], [lacking] = (
        list(versions.of_crds([one], ours)) for one in (ours[0], older, newer, without)
    )

    assert same == []
    assert "is older than this command line: it has no spec." in less.text
    assert "does not know spec.fresh; install the command line" in more.text
    assert "it has no version v1beta1; kubefoundry controller upgrade" in lacking.text
