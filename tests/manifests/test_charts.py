"""The charts are those of the manifests: generated, complete, and without values that a controller writes."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from charts.files import CHARTS, CRD_FILES, ROOT, files
from charts.sources import SOURCES
from charts.templates import MissingPlace, Place, Source, crd_template, template

import kubefoundry_direct.provider as direct
import kubefoundry_dynamo.provider as dynamo
import kubefoundry_kaito.provider as kaito
import kubefoundry_kuberay.provider as kuberay

GENERATED: Final = files()
HAND_WRITTEN: Final = {
    "kubefoundry/templates/NOTES.txt",
    "kubefoundry/templates/_components.tpl",
    "kubefoundry/templates/certificate.yaml",
    "kubefoundry-crds/templates/_annotations.tpl",
}
NO_SOURCES: Final = {
    "conversion/conversion.yaml": "no version needs it yet; the chart of the CRDs would need it, too",
    "core.yaml": "consists of other files",
    "install.yaml": "consists of other files",
    "monitoring/kube-state-metrics.yaml": "the configuration of another program, which has a chart of its own",
    "namespace.yaml": "Helm creates the namespace of a release",
}
"""Manifests that are in no template, with the reason."""


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text() == GENERATED[path], "out of date: make manifests"


def test_charts_have_no_other_file() -> None:
    present = {path for path in CHARTS.rglob("*") if path.is_file()}

    assert present - GENERATED.keys() == {CHARTS / name for name in HAND_WRITTEN}


def test_every_manifest_is_in_a_chart() -> None:
    manifests = ROOT / "manifests"
    present = {path for path in manifests.rglob("*.yaml") if path.name != "kustomization.yaml"}
    crds = {path for path in (ROOT / "crds").rglob("*.yaml") if path.name != "kustomization.yaml"}

    assert {ROOT / source.path for source in SOURCES} == present - {manifests / name for name in NO_SOURCES}
    assert {ROOT / path for path in CRD_FILES} == crds


def test_webhooks_lack_the_fields_that_core_writes() -> None:
    """A rendered value would take the field from core at each upgrade, or be a conflict."""
    text = GENERATED[CHARTS / "kubefoundry" / "templates" / "core.yaml"]

    assert text.count("WebhookConfiguration\n") == 2
    assert "caBundle:" not in text
    assert "matchConditions:" not in text


@pytest.mark.parametrize("chart", ["kubefoundry", "kubefoundry-crds"])
def test_schema_is_closed_everywhere(chart: str) -> None:
    schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
    schema["properties"].pop("global")

    assert [path for path, node in objects_of(schema) if "additionalProperties" not in node] == []


@pytest.mark.parametrize("module", [kaito, dynamo, kuberay, direct], ids=lambda module: module.NAME)
def test_provider_has_default_images_of_its_engines(module: ModuleType) -> None:
    schema = json.loads((CHARTS / "kubefoundry" / "values.schema.json").read_text())
    definition = schema["$defs"]["Providers"]["properties"][module.NAME]["$ref"].rpartition("/")[2]

    images = schema["$defs"][definition]["properties"]["defaultImages"]

    assert set(images["properties"]) == set(module.with_defaults().capabilities.engines)


def objects_of(node: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Return each schema of an object with its path."""
    if isinstance(node, list):
        return [found for index, item in enumerate(node) for found in objects_of(item, f"{path}/{index}")]
    if not isinstance(node, dict):
        return []
    own = [(path, node)] if node.get("type") == "object" else []
    return own + [found for key, child in node.items() for found in objects_of(child, f"{path}/{key}")]


SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata:
  name: x
  labels:
    app.kubernetes.io/part-of: kubefoundry
"""


def test_missing_place_is_an_error() -> None:
    place = Place(r"^  replicas: 1\n", "")

    with pytest.raises(MissingPlace, match="has no"):
        template(Source("x.yaml", "x.yaml", "true", places=(place,)), SERVICE)
    with pytest.raises(MissingPlace, match="has no"):
        template(Source("x.yaml", "x.yaml", "true"), SERVICE.replace("  labels:\n", ""))
    with pytest.raises(MissingPlace, match="which Helm would evaluate"):
        crd_template("x.yaml", "description: '{{ x }}'\n", ())
