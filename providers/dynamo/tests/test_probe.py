"""Which version of the CRD is written, and what is missing where none can be."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubefoundry_dynamo.probe import UPSTREAM, probe
from kubefoundry_dynamo.versions import release_line
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from support.upstream import crds, requires_shared, standin

LINES = {
    "v0.4.1": ("v1alpha1", (0, 4)),
    "v0.7.1": ("v1alpha1", (0, 7)),
    "v0.8.1": ("v1alpha1", (0, 8)),
    "v0.9.1": ("v1alpha1", (0, 9)),
    "v1.0.1": ("v1alpha1", (1, 0)),
    "v1.2-main-0a132bc43": ("v1alpha1", (1, 2)),
    "v1.4-main-d7bb84ef0": ("v1alpha1", (1, 4)),
    "main-2a6da14c8": ("v1beta1", (1, 5)),
}


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("crd", crds("dynamo"), ids=str)
def test_real_crds(crd: Any) -> None:
    schema = probe(crd.document)

    assert isinstance(schema, Schema)
    version, line = LINES[crd.name]
    assert schema.api_version == f"nvidia.com/{version}" == f"nvidia.com/{crd.storage_version}"
    assert release_line(schema)[:2] == line
    assert crd.document["metadata"]["name"] == UPSTREAM.crd


def crd_with(*versions: tuple[str, bool, bool]) -> dict[str, Any]:
    """The stand-in's schema under other version names: (name, served, storage)."""
    document = copy.deepcopy(standin("dynamo").document)
    schema = document["spec"]["versions"][0]["schema"]
    document["spec"]["versions"] = [
        {"name": name, "served": served, "storage": storage, "schema": schema}
        for name, served, storage in versions
    ]
    return document


def test_stand_in_is_of_1_0() -> None:
    schema = probe(standin("dynamo").document)

    assert isinstance(schema, Schema)
    assert schema.api_version == "nvidia.com/v1alpha1"
    assert release_line(schema)[:2] == (1, 0)


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ([("v1alpha1", True, True), ("v1beta1", True, False)], "v1alpha1"),
        ([("v1alpha1", True, False), ("v1", True, True)], "v1alpha1"),
        ([("v1alpha1", True, False), ("v1beta1", False, True)], "v1alpha1"),
    ],
)
def test_storage_version_where_known(versions: list[tuple[str, bool, bool]], chosen: str) -> None:
    schema = probe(crd_with(*versions))

    assert isinstance(schema, Schema)
    assert schema.api_version == f"nvidia.com/{chosen}"


def test_unknown_versions_are_named() -> None:
    assert probe(crd_with(("v1", True, True))) == UnsupportedSchema(
        ("nvidia.com/v1beta1", "nvidia.com/v1alpha1")
    )


def test_missing_fields_are_named() -> None:
    document = crd_with(("v1alpha1", True, True))
    spec = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["backendFramework"]
    del spec["services"]["additionalProperties"]["properties"]["extraPodSpec"]["properties"]["mainContainer"]

    assert probe(document) == UnsupportedSchema(
        ("spec.backendFramework", "spec.services{}.extraPodSpec.mainContainer")
    )


def test_v1beta1_alone_is_chosen_and_checked() -> None:
    schema = probe(crd_with(("v1beta1", True, True)))

    assert isinstance(schema, UnsupportedSchema)
    assert "spec.components[].podTemplate.spec.containers" in schema.missing
