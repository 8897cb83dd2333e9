"""Which schema a CRD means, by its fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_kaito.probe import (
    ACCESS_SECRET,
    ANY_MODEL,
    ENGINE_CONFIG,
    INSTANCE_TYPE_DEFAULT,
    REQUIRED,
    probe,
)
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from support import upstream

BETA, ALPHA = "kaito.sh/v1beta1", "kaito.sh/v1alpha1"


def tree(*paths: str) -> dict[str, Any]:
    """A schema with those fields."""
    root: dict[str, Any] = {}
    for path in paths:
        node = root
        for name in path.split("."):
            node = node.setdefault("properties", {}).setdefault(name, {})
    return root


def crd(**versions: dict[str, Any]) -> dict[str, Any]:
    """A CRD with those versions; the schema is `tree(*REQUIRED)` where it is not stated."""
    listed = [
        {
            "name": name,
            "served": True,
            "storage": False,
            "schema": {"openAPIV3Schema": tree(*REQUIRED)},
            **version,
        }
        for name, version in versions.items()
    ]
    return {"spec": {"group": "kaito.sh", "versions": listed}}


def written(document: dict[str, Any]) -> Schema | UnsupportedSchema:
    """What the CRD means for the writing: what is lost follows from the features."""
    probed = probe(document)
    return replace(probed, lost=()) if isinstance(probed, Schema) else probed


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(crd(v1alpha1={}, v1beta1={"storage": True}), Schema(BETA), id="the storage version"),
        pytest.param(crd(v1alpha1={"storage": True}, v1beta1={}), Schema(ALPHA), id="storage before newer"),
        pytest.param(
            crd(v1beta1={}, v2={"storage": True}), Schema(BETA), id="storage unknown, a known one served"
        ),
        pytest.param(
            crd(v1alpha1={}, v1beta1={"storage": True, "served": False}),
            Schema(ALPHA),
            id="storage not served",
        ),
        pytest.param(
            crd(v2={"storage": True}),
            UnsupportedSchema(("kaito.sh/v1beta1", "kaito.sh/v1alpha1")),
            id="no known version",
        ),
        pytest.param(
            crd(v1beta1={"storage": True, "schema": {"openAPIV3Schema": tree(*REQUIRED[1:])}}),
            UnsupportedSchema(("resource.count",)),
            id="a field is missing",
        ),
    ],
)
def test_known_storage_version_is_written(
    document: dict[str, Any], expected: Schema | UnsupportedSchema
) -> None:
    assert written(document) == expected


def test_optional_fields_become_features() -> None:
    schema = tree(*REQUIRED, ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL, "resource.instanceType")
    schema["properties"]["resource"]["properties"]["instanceType"]["default"] = "big"

    probed = written(crd(v1beta1={"storage": True, "schema": {"openAPIV3Schema": schema}}))

    assert probed == Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL, INSTANCE_TYPE_DEFAULT}))


def test_stand_in_is_the_newest_schema() -> None:
    assert probe(upstream.standin("kaito").document) == Schema(
        BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL})
    )


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        pytest.param((ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL), (), id="nothing"),
        pytest.param(
            (ENGINE_CONFIG, ACCESS_SECRET),
            ("models without a built-in preset where image is left out",),
            id="any model",
        ),
        pytest.param(
            (ENGINE_CONFIG, ANY_MODEL), ("secrets.huggingFaceToken without image",), id="the access secret"
        ),
        pytest.param((ACCESS_SECRET, ANY_MODEL), ("vllm without image",), id="the engine's configuration"),
    ],
)
def test_probe_names_models_lost_by_a_missing_field(fields: tuple[str, ...], lost: tuple[str, ...]) -> None:
    schema = tree(*REQUIRED, *fields)

    probed = probe(crd(v1beta1={"storage": True, "schema": {"openAPIV3Schema": schema}}))

    assert isinstance(probed, Schema)
    assert probed.lost == lost


RELEASES = {
    "v0.3.1": Schema(ALPHA, frozenset({INSTANCE_TYPE_DEFAULT})),
    "v0.4.0": Schema(ALPHA, frozenset({INSTANCE_TYPE_DEFAULT})),
    "v0.4.4": Schema(ALPHA, frozenset({ENGINE_CONFIG, INSTANCE_TYPE_DEFAULT})),
    "v0.4.6": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, INSTANCE_TYPE_DEFAULT})),
    "v0.5.1": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, INSTANCE_TYPE_DEFAULT})),
    "v0.7.2": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, INSTANCE_TYPE_DEFAULT})),
    "v0.8.1": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET})),
    "v0.9.4": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL})),
    "v0.10.0": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL})),
    "v0.11.0": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL})),
    "v0.12.0": Schema(BETA, frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL})),
}


@pytest.mark.upstream
@upstream.requires_shared
def test_every_release_is_reported_apart() -> None:
    assert {crd.name: written(crd.document) for crd in upstream.crds("kaito")} == RELEASES
