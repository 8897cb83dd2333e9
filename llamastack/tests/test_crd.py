"""Tests that the CRD's file matches the models, and has all fields of the existing operator."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_llamastack.api.crd import at, definition, text

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("KUBEFOUNDRY_SHARED") or ROOT.parent / "shared")
REAL = SHARED / "upstream-crds" / "llamastack" / "llamastack.io_llamastackdistributions.yaml"

Schema = dict[str, Any]

DIFFERENCES = {
    # merged by the API server, so that two writers of conditions do not undo each other
    r"status\.conditions": "list-map by type",
    r"status\.conditions\[\]\.type": "the same pattern, written another way",
    r"status\.distributionConfig\.providers\[\]\.config": "an object, as llama-stack sends it",
    # core/v1 of Kubernetes 1.36 against that of the recorded CRD
    r"spec\.server\.podOverrides\.volumes\[\]\.azureDisk\.cachingMode": "default of a newer Kubernetes",
    r"spec\.server\.podOverrides\.volumes\[\]\.azureDisk\.kind": "default of a newer Kubernetes",
    r"spec\.server\.podOverrides\.volumes\[\](\.projected\.sources\[\])?\.(configMap|secret)": "not atomic there",
}
"""Path of what differs, and why."""


def test_crd_file_matches_models() -> None:
    path = ROOT / "crds" / "llamastack" / "llamastackdistributions.yaml"

    assert path.read_text() == text(), "out of date: make crds"


@pytest.mark.accept("FR-006", "FR-007", "FR-008", "FR-010")
def test_crd_accepts_providers_in_every_section() -> None:
    spec = root(definition())["spec"]

    sections = at(spec, "server.externalProviders")["properties"]

    assert list(sections) == [
        *("inference", "safety", "agents", "vectorIo", "datasetIo", "scoring", "eval"),
        *("toolRuntime", "postTraining", "responses", "batches", "files", "fileProcessors"),
    ]
    for section in sections.values():
        item = section["items"]
        assert section["x-kubernetes-list-type"] == "atomic"
        assert "x-kubernetes-validations" not in section
        assert item["required"] == ["providerId", "image"]
        assert set(item["properties"]) == {"providerId", "image", "imagePullPolicy", "service", "config"}
        assert item["properties"]["imagePullPolicy"]["default"] == "IfNotPresent"
        assert item["properties"]["config"]["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.upstream
@pytest.mark.skipif(not REAL.is_file(), reason=f"the existing operator's CRD is not in {REAL}")
def test_crd_keeps_all_fields_of_existing_operator() -> None:
    real = flat(root(yaml.safe_load(REAL.read_text())))
    ours = flat(root(definition()))

    unlike = {
        path
        for path, node in real.items()
        if ours.get(path) != node and not any(re.fullmatch(pattern, path) for pattern in DIFFERENCES)
    }
    assert unlike == set()


def root(crd: Schema) -> Schema:
    schema: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return {part: schema[part] for part in ("spec", "status")}


def flat(parts: Schema) -> dict[str, Schema]:
    """Return the type and the rules at every path of the schema."""
    places: dict[str, Schema] = {}
    for part, schema in parts.items():
        _flat(schema, part, places)
    return places


def _flat(node: Schema, path: str, places: dict[str, Schema]) -> None:
    inner = {"properties", "items", "additionalProperties", "description", "required"}
    places[path] = {key: value for key, value in node.items() if key not in inner}
    places[path]["required"] = sorted(node.get("required", ()))
    for name, child in node.get("properties", {}).items():
        _flat(child, f"{path}.{name}", places)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(key), dict):
            _flat(node[key], path + mark, places)
