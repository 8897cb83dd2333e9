import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk._api import crd

CRDS = Path(__file__).parents[2] / "crds"
DEFINITIONS = [crd.model_deployments(), crd.provider_configs()]


def _schema(definition: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from _nodes(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _nodes(schema[key], f"{path}[]")


def test_crd_files_equal_the_typed_models(tmp_path: Path) -> None:
    written = crd.write(tmp_path)

    assert [path.name for path in written] == ["modeldeployments.yaml", "inferenceproviderconfigs.yaml"]
    for path in written:
        assert path.read_text() == (CRDS / path.name).read_text(), (
            "run: python -m kubefoundry_sdk._api.crd crds"
        )


def test_packaged_schemas_are_those_of_the_models(tmp_path: Path) -> None:
    crd.write_schemas(tmp_path)

    packaged = {path.name: path.read_text() for path in Path(crd.__file__).parent.glob("*.schema.json")}
    assert packaged == {path.name: path.read_text() for path in tmp_path.iterdir()}, "run: make crds"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda it: it["spec"]["names"]["kind"])
def test_every_field_is_documented(definition: dict[str, Any]) -> None:
    undocumented = [path for path, node in _nodes(_schema(definition)) if not _described(path, node)]

    assert undocumented == []


def _described(path: str, node: dict[str, Any]) -> bool:
    return path.endswith("[]") or bool(re.match(r"[A-Z].*\.$", node.get("description", "")))


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda it: it["spec"]["names"]["kind"])
def test_nothing_is_newer_than_kubernetes_1_26(definition: dict[str, Any]) -> None:
    version = definition["spec"]["versions"][0]
    for path, node in _nodes(_schema(definition)):
        for rule in node.get("x-kubernetes-validations", []):
            assert rule.keys() == {"rule", "message"}, path
            assert not re.search(r"\?|oldSelf|quantity\(|cel\.|format\(", rule["rule"]), path
    assert "selectableFields" not in version


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda it: it["spec"]["names"]["kind"])
def test_crd_default_breaks_no_rule_of_its_schema(definition: dict[str, Any]) -> None:
    """The API server holds a default to the rules at and below its place before it fills it up."""
    for path, node in _nodes(_schema(definition)):
        if "default" in node:
            ruled = [below for below, inner in _nodes(node) if "x-kubernetes-validations" in inner]
            assert ruled == [], path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda it: it["spec"]["names"]["kind"])
def test_conditions_have_one_owner_each(definition: dict[str, Any]) -> None:
    conditions = _schema(definition)["properties"]["status"]["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_names_and_columns() -> None:
    deployments, configs = (definition["spec"] for definition in DEFINITIONS)
    columns = deployments["versions"][0]["additionalPrinterColumns"]

    assert (deployments["names"]["shortNames"], deployments["scope"]) == (["md"], "Namespaced")
    assert (configs["names"]["shortNames"], configs["scope"]) == (["ipc"], "Cluster")
    assert [column["name"] for column in columns if not column.get("priority")] == [
        *(
            "Provider",
            "Phase",
            "Ready",
            "Generation",
            "Observed",
            "Replicas",
            "Desired",
            "Endpoint",
            "Port",
            "Age",
            "Deleting",
        )
    ]
    assert [column["name"] for column in columns if column.get("priority")] == [
        *("Model", "Engine", "Selected-Engine", "Paused", "Reason", "Message")
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        ([], 2, "usage: "),
        (["a", "b", "c"], 2, "usage: "),
        (["no/such/folder"], 1, "CRDs not written to no/such/folder"),
    ],
)
def test_crd_command_reports_why_it_wrote_nothing(
    arguments: list[str], code: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert crd.main(arguments) == code
    assert capsys.readouterr().err.startswith(error)


def test_crd_command_lists_written_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crd.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(path) for path in crd.write(tmp_path)]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda it: it["spec"]["names"]["kind"])
def test_versions_have_the_same_fields_columns_and_subresources(definition: dict[str, Any]) -> None:
    own = ("name", "served", "storage", "deprecated", "deprecationWarning")
    versions = definition["spec"]["versions"]

    older, newest = ({key: part for key, part in each.items() if key not in own} for each in versions)

    assert older == newest
    assert [(each["name"], each["served"], each["storage"]) for each in versions] == [
        ("v1alpha1", True, True),
        ("v1beta1", True, False),
    ]
