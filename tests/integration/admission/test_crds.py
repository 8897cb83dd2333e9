"""Both CRDs on a real API server: documented fields, defaults, refusals and columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api import crd, names, validation
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.rules import RULES
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk.testing.generated import specs
from support.admission import dry_runs
from support.deployments import model_deployment
from support.refused_specs import AGGREGATED, DISAGGREGATED, REFUSED
from support.schema_values import values
from support.waiting import SECONDS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
NAMESPACE = "crd-tests"
COMMITTED = (crd.model_deployments(), crd.provider_configs())
SPEC = COMMITTED[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


@pytest.fixture(scope="module")
def installed(cluster: ControlPlane) -> ControlPlane:
    """The cluster with both CRDs and a namespace for these tests; no answer of the server was a warning."""
    for definition in COMMITTED:
        answer = cluster.kubectl(
            "apply", "-f", str(ROOT / "crds" / f"{definition['spec']['names']['plural']}.yaml")
        )
        assert "Warning" not in answer.stderr
        cluster.wait_served(definition["metadata"]["name"])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(namespace))
    return cluster


def deployment(name: str, spec: Any) -> dict[str, Any]:
    return model_deployment(name, NAMESPACE, spec)


def answers(cluster: ControlPlane, specs: list[Any]) -> list[str | dict[str, Any]]:
    return dry_runs(cluster, NAMESPACE, specs)


def test_crd_rule_refuses_with_its_message(installed: ControlPlane) -> None:
    reported = answers(installed, [refused.spec for refused in REFUSED])

    for refused, answer in zip(REFUSED, reported, strict=True):
        assert isinstance(answer, str) and refused.message in answer, refused.name


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_crd_example_is_accepted_with_python_defaults(installed: ControlPlane, path: Path) -> None:
    spec = yaml.safe_load(path.read_text())["spec"]

    (created,) = answers(installed, [spec])

    assert isinstance(created, dict), created
    assert created["spec"] == validation.default(spec)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("bad/*.yaml")), ids=lambda path: path.stem)
def test_bad_example_is_refused_with_the_text_of_python(installed: ControlPlane, path: Path) -> None:
    spec = yaml.safe_load(path.read_text())["spec"]

    (answer,) = answers(installed, [spec])

    assert isinstance(answer, str) and validation.validate(spec)[0].message in answer


# one batch is one call; no shrinking, because that would be hundreds of calls
BY_SERVER = settings(max_examples=10, derandomize=True, phases=[Phase.generate], database=None)


def test_valid_specs_are_taken_with_the_defaults_of_python(installed: ControlPlane) -> None:
    @BY_SERVER
    @given(st.lists(specs(), min_size=15, max_size=15))
    def agree(all_specs: list[dict[str, Any]]) -> None:
        for spec, created in zip(all_specs, answers(installed, all_specs), strict=True):
            assert isinstance(created, dict), created
            assert created["spec"] == validation.default(spec)

    agree()


def test_server_breaks_the_same_rules_as_python(installed: ControlPlane) -> None:
    @BY_SERVER
    @given(st.lists(values(SPEC), min_size=15, max_size=15))
    def agree(all_specs: list[dict[str, Any]]) -> None:
        for spec, answer in zip(all_specs, answers(installed, all_specs), strict=True):
            expected = {problem.message for problem in validation.validate(spec)} & {r.message for r in RULES}
            if isinstance(answer, str):
                assert {rule.message for rule in RULES if rule.message in answer} == expected
            else:
                assert expected == set()

    agree()


def test_server_finds_the_same_structure_wrong_as_python(installed: ControlPlane) -> None:
    @BY_SERVER
    @given(st.lists(values(SPEC, odd=True).filter(lambda spec: spec is not None), min_size=15, max_size=15))
    def agree(all_specs: list[Any]) -> None:
        for spec, answer in zip(all_specs, answers(installed, all_specs), strict=True):
            assert isinstance(answer, str) == _refused_by_crd(spec), (spec, answer)

    agree()


def _refused_by_crd(spec: Any) -> bool:
    """Whether Python finds more than what only Python says: keys of labels, and args."""
    only_ours = ("the key must be", "set only ")
    return any(
        not any(text in problem.message for text in only_ours) for problem in validation.validate(spec)
    )


def test_every_field_is_explained(installed: ControlPlane) -> None:
    schemas = _published_schemas(installed)
    for definition in COMMITTED:
        kind = definition["spec"]["names"]["kind"]
        fields = dict(_fields(schemas[f"ai.kubefoundry.v1alpha1.{kind}"], ""))
        assert [path for path, field in fields.items() if not field.get("description")] == []

        explained = installed.kubectl("explain", kind.lower(), "--recursive").stdout
        for path in fields:
            assert f"  {path.removesuffix('[]').rsplit('.', 1)[-1]}\t<" in explained, path


def _published_schemas(cluster: ControlPlane) -> dict[str, Any]:
    """The server's OpenAPI; it is published a moment after the CRD is established."""
    until = monotonic() + SECONDS
    while True:
        answer = cluster.kubectl("get", "--raw", f"/openapi/v3/apis/{names.API_VERSION}", check=False)
        schemas: dict[str, Any] = json.loads(answer.stdout or "{}").get("components", {}).get("schemas", {})
        wanted = {
            f"ai.kubefoundry.v1alpha1.{definition['spec']['names']['kind']}" for definition in COMMITTED
        }
        if wanted <= schemas.keys():
            return schemas
        assert monotonic() < until, answer.stderr


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], path)


def test_model_is_scaled_by_kubectl(installed: ControlPlane) -> None:
    for spec in (AGGREGATED, DISAGGREGATED):
        name = spec.get("serving", {}).get("mode", "aggregated")
        installed.kubectl("apply", "-f", "-", input=json.dumps(deployment(name, spec)))
    installed.kubectl(
        *("patch", "md", "aggregated", "-n", NAMESPACE, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": {"replicas": {"desired": 3, "ready": 2, "available": 2}}})),
    )

    installed.kubectl("scale", "md/aggregated", "-n", NAMESPACE, "--replicas=3")
    refused = installed.kubectl("scale", "md/disaggregated", "-n", NAMESPACE, "--replicas=3", check=False)

    scale = installed.kubectl("get", "md", "aggregated", "-n", NAMESPACE, "--subresource=scale", "-o", "json")
    assert json.loads(scale.stdout)["spec"] == {"replicas": 3}
    assert json.loads(scale.stdout)["status"]["replicas"] == 2
    assert "Disaggregated mode requires scaling.replicas 1" in refused.stderr


def test_columns_show_the_state(installed: ControlPlane) -> None:
    installed.kubectl("apply", "-f", "-", input=json.dumps(deployment("shown", AGGREGATED)))
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "DeploymentReady",
        "message": "serves",
        "lastTransitionTime": "2026-02-04T10:00:00Z",
        "observedGeneration": 1,
    }
    status = {
        "phase": "Running",
        "provider": {"name": "somebody"},
        "replicas": {"desired": 2, "ready": 1, "available": 1},
        "endpoint": {"service": "shown-api", "port": 8000},
        "message": "serves",
        "observedGeneration": 1,
        "conditions": [ready],
    }
    installed.kubectl(
        *("patch", "md", "shown", "-n", NAMESPACE, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": status})),
    )

    # an edit that is not observed yet, of a model that is paused
    installed.kubectl("annotate", "md", "shown", "-n", NAMESPACE, f"{names.PAUSED_ANNOTATION}=true")
    edit = {"spec": {"engine": {"contextLength": 4096}}}
    installed.kubectl("patch", "md", "shown", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(edit))

    header, row = installed.kubectl("get", "md", "shown", "-n", NAMESPACE, "-o", "wide").stdout.splitlines()

    assert " ".join(header.split()) == (
        "NAME PROVIDER PHASE READY GENERATION OBSERVED REPLICAS DESIRED ENDPOINT PORT AGE DELETING "
        "MODEL ENGINE SELECTED-ENGINE PAUSED REASON MESSAGE"
    )
    cells = row.split()
    assert cells[:10] == ["shown", "somebody", "Running", "True", "2", "1", "1", "2", "shown-api", "8000"]
    assert cells[11:] == ["meta-llama/Llama-3.1-8B-Instruct", "vllm", "true", "DeploymentReady", "serves"]


async def test_each_writer_keeps_its_own_conditions(installed: ControlPlane, api: Client) -> None:
    installed.kubectl("apply", "-f", "-", input=json.dumps(deployment("shared", AGGREGATED)))
    for manager, type_ in (("one", "Validated"), ("two", "Ready")):
        condition = {
            "type": type_,
            "status": "True",
            "reason": "Because",
            "message": "",
            "lastTransitionTime": "2026-02-04T10:00:00Z",
        }
        applied = deployment("shared", AGGREGATED) | {"status": {"conditions": [condition]}}
        del applied["spec"]
        await api.apply_status(MODEL_DEPLOYMENTS, applied, manager=manager)

    stored = await api.get(MODEL_DEPLOYMENTS, "shared", NAMESPACE)

    assert [condition["type"] for condition in stored["status"]["conditions"]] == ["Validated", "Ready"]


def test_registration_gets_its_defaults(installed: ControlPlane) -> None:
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.PROVIDER_CONFIG,
        "metadata": {"name": "crd-tests"},
        "spec": {
            "capabilities": {"engines": ["vllm", "their-own"], "servingModes": ["aggregated"]},
            "selectionRules": [{"condition": "true"}],
        },
    }
    created = installed.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(config)
    )

    assert json.loads(created.stdout)["spec"] == {
        "capabilities": {
            "engines": ["vllm", "their-own"],
            "servingModes": ["aggregated"],
            "cpuSupport": False,
            "gpuSupport": False,
        },
        "selectionRules": [{"condition": "true", "priority": 0}],
    }


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"selectionRules": [{"condition": ""}]}, "spec.selectionRules[0].condition"),
        ({"selectionRules": [{"condition": "x" * 1025}]}, "spec.selectionRules[0].condition"),
        ({"selectionRules": [{"condition": "true"}] * 65}, "spec.selectionRules"),
        ({"selectionRules": [{"priority": 1}]}, "spec.selectionRules[0].condition"),
        ({"capabilities": {"servingModes": ["agregated"]}}, "spec.capabilities.servingModes[0]"),
    ],
)
def test_registration_out_of_bounds_is_refused(
    installed: ControlPlane, spec: dict[str, Any], where: str
) -> None:
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.PROVIDER_CONFIG,
        "metadata": {"name": "crd-tests"},
        "spec": spec,
    }

    answer = installed.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(config), check=False)

    assert where in answer.stderr
