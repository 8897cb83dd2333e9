"""`kubefoundry provider new --crd`: a package for the kind of a CRD."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kubefoundry_cli.main import kubefoundry
from kubefoundry_cli.new import template, upstream_crd
from kubefoundry_widgets.provider import NO_PLACE

ROOT = Path(__file__).resolve().parents[2]
KSERVE = ROOT / "examples" / "kserve" / "tests" / "llminferenceservices.crd.yaml"
KUBERAY = ROOT / "dev" / "simulators" / "crds" / "kuberay.yaml"
WIDGETS = ROOT / "examples" / "provider" / "widgets.crd.yaml"


def crd_with(**spec: Any) -> dict[str, Any]:
    """Return a CRD whose `spec` has the given parts."""
    crd: dict[str, Any] = yaml.safe_load(WIDGETS.read_text())
    return {**crd, "spec": {**crd["spec"], **spec}}


def version_with(properties: dict[str, Any]) -> dict[str, Any]:
    """Return a version of a CRD with these properties of an object."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": "v2", "served": True, "storage": True, "schema": schema}


def new(*arguments: str) -> tuple[int, str]:
    """Run `kubefoundry provider new`, and return its exit code and output."""
    ended = CliRunner().invoke(kubefoundry, ["provider", "new", *arguments])
    return ended.exit_code, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        pytest.param(
            KSERVE, '"serving.kserve.io", "llminferenceservices", "LLMInferenceService"', id="kserve"
        ),
        pytest.param(KUBERAY, '"ray.io", "rayservices", "RayService"', id="kuberay"),
        pytest.param(WIDGETS, '"example.com", "widgets", "Widget"', id="widgets"),
    ],
)
@pytest.mark.slow
def test_new_provider_of_crd_passes_its_tests(file: Path, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"

    code, output = new("acme", "--crd", str(file), "--folder", str(folder))

    assert code == 0, output
    source = (folder / "src" / "kubefoundry_acme" / "provider.py").read_text()
    assert f"UpstreamKind({kind})" in source
    assert (folder / "acme.crd.yaml").read_text() == file.read_text()
    installed = folder / "src" / "kubefoundry_provider_acme-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: kubefoundry-provider-acme\nVersion: 0.1.0\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"kind": "ConfigMap"}, "has 0 CustomResourceDefinitions"),
        (crd_with(scope="Cluster"), "has no valid namespaced scope"),
        (crd_with(group=None), "has no valid group"),
        (crd_with(names={"kind": 'W"', "plural": "w"}), "has no valid kind"),
        (crd_with(versions=[]), "has no valid stored version"),
        (crd_with(versions=[version_with({"size": {"type": "integer"}})]), "declares no fields of spec"),
    ],
)
def test_unusable_crd_is_rejected(document: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(document))

    code, output = new("acme", "--crd", str(tmp_path / "crd.yaml"), "--folder", str(tmp_path / "package"))

    assert code == 2
    assert words in output
    assert not (tmp_path / "package").exists()


def test_missing_crd_file_is_rejected(tmp_path: Path) -> None:
    code, output = new("acme", "--crd", str(tmp_path / "none.yaml"))

    assert (code, "cannot read" in output) == (2, True)


def test_group_other_than_the_crds_is_rejected(tmp_path: Path) -> None:
    code, output = new("acme", "--crd", str(KSERVE), "--group", "acme.com", "--folder", str(tmp_path / "p"))

    assert (code, "is of group serving.kserve.io, not acme.com" in output) == (2, True)


def test_field_names_of_crd_are_no_code(tmp_path: Path) -> None:
    hostile = 'x"): 0}\nimport os; os.abort()\r#'
    properties = {hostile: {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["\n#'"]}}}}
    crd = crd_with(versions=[version_with({"spec": {"properties": properties, "required": [hostile]}})])
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))

    files = template.files("acme", "example.com", upstream_crd.read(tmp_path / "crd.yaml"))

    for path, text in files.items():
        if path.endswith(".py"):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
            assert "abort" not in {call.attr for call in calls}, path


@pytest.mark.parametrize("name", ["class", "provider", "version", "mapping"])
def test_name_that_is_a_word_of_python_is_usable(name: str) -> None:
    for path, text in template.files(name, "example.com").items():
        if path.endswith("provider.py"):
            parameters = [node.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arg)]
            assert name not in parameters


def test_template_of_crd_refuses_what_the_example_refuses() -> None:
    assert set(NO_PLACE) <= upstream_crd.HONOURED_BY.keys()
