"""The generated schemas are current; that of functions fits the requests, and the results of our own providers."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its types are another package

from kubefoundry_conformance.cases import crd_in, read
from kubefoundry_conformance.functions.subject import Functions, build_deployment, load_provider
from kubefoundry_sdk import (
    Deployment,
    Endpoint,
    NotReadable,
    Observation,
    Provider,
    Replicas,
    Schema,
    UnsupportedSchema,
)
from kubefoundry_sdk._functions import messages
from kubefoundry_sdk._functions.client import Client
from kubefoundry_sdk._functions.main import described as described_by
from kubefoundry_sdk.testing import deployment, specs
from support.sampled_cases import examples

ROOT = Path(__file__).resolve().parents[2]
PAGES = runpy.run_path(str(ROOT / "docs" / "functions_schema.py"))
SCHEMA = json.loads((ROOT / "docs" / "functions.schema.json").read_text(encoding="utf-8"))
PROVIDERS = ("kaito", "dynamo", "kuberay", "direct")


def valid(definition: str, document: Any) -> Any:
    """Return the document as it is read from a line. Raise ValidationError if it does not match the schema."""
    read_again = json.loads(json.dumps(document))
    Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]}).validate(read_again)
    return read_again


def round_trip(function: str, result: Any) -> Any:
    """Validate a result as a response, and return what the SDK reads of it."""
    name = f"{function[0].upper()}{function[1:]}Response"
    response = valid(name, {"id": 1, "result": result})
    return messages.read(function, json.dumps(response).encode() + b"\n", 1)


@cache
def subject(name: str) -> Functions:
    provider = load_provider(name)
    cases = read(ROOT / "providers" / name / "cases.yaml")
    crd_file = ROOT / "dev" / "simulators" / "crds" / f"{name}.yaml"
    crd = None if provider.upstream.version else crd_in(crd_file, provider.upstream.crd)
    return Functions(provider, crd, cases)


def models(of: Functions) -> Iterator[Deployment]:
    """Yield the deployments of the cases, and small ones, that the provider accepts."""
    for spec in of.bases():
        yield build_deployment(spec)


@pytest.mark.parametrize("name", PAGES["DOCUMENTS"])
def test_generated_schema_is_current(name: str) -> None:
    file = ROOT / "docs" / f"{name}.schema.json"

    assert file.read_text(encoding="utf-8") == PAGES["text"](name), "make docs"


def test_functions_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@settings(deadline=None, max_examples=examples(100))
@given(spec=specs())
def test_every_generated_spec_fits_the_request(spec: dict[str, Any]) -> None:
    request = {
        "id": 1,
        "function": "render",
        "protocol": 1,
        "settings": messages.Settings().model_dump(by_alias=True),
        "deployment": messages.deployment(deployment(spec)),
        "schema": messages.schema(Schema("example.com/v1", frozenset({"b", "a"}), ("tiers",), {"c": "d"})),
    }

    valid("RenderRequest", request)


RECORDER = """
import json, sys
results = json.loads(sys.argv[1])
for raw in sys.stdin:
    request = json.loads(raw)
    print(raw, end="", file=open(sys.argv[2], "a"), flush=True)
    print(json.dumps({"id": request["id"], "result": results[request["function"]]}), flush=True)
"""


def test_request_of_every_function_fits_the_schema(tmp_path: Path) -> None:
    functions = ["probe", "recreate", "mustRecreate", "readBack"]
    kind = {"group": "example.com", "plural": "widgets", "kind": "Widget"}
    can = {"engines": [], "servingModes": [], "cpuSupport": True, "gpuSupport": True}
    names = {"name": "widgets", "title": "Widgets", "version": "1"}
    main = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "m"}}
    observation = Observation("Pending", "Progressing", "", Replicas(1, 0, 0), Endpoint())
    results = {
        "describe": {"protocol": 1, **names, "capabilities": can, "upstream": kind, "functions": functions},
        "probe": {"missing": ["spec.model"]},
        "supports": [],
        "render": {"main": main},
        "observe": messages.observed(observation),
        "recreate": None,
        "mustRecreate": True,
        "readBack": {"notReadable": "it has no engine"},
    }
    requests = tmp_path / "requests"
    client = Client([sys.executable, "-c", RECORDER, json.dumps(results), str(requests)], messages.Settings())
    provider, model = described_by(client, None), deployment({"engine": {"type": "vllm"}})
    assert provider.read_back is not None

    assert provider.probe({"spec": {}}) == UnsupportedSchema(("spec.model",))
    assert list(provider.supports(model, None)) == []
    rendered = provider.render(model, Schema("example.com/v1"))
    assert provider.observe(model, main) == observation
    assert provider.recreate(rendered, rendered) is None
    assert provider.must_recreate(main) is True
    with pytest.raises(NotReadable, match="it has no engine"):
        provider.read_back(main, [main])
    client.close()

    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    assert {line["function"] for line in lines} == set(results)
    for line in lines:
        valid(f"{line['function'][0].upper()}{line['function'][1:]}Request", line)
    assert len({line["id"] for line in lines}) == len(lines)


@pytest.mark.parametrize("name", PROVIDERS)
def test_renders_of_own_provider_fit_the_schema(name: str) -> None:
    of = subject(name)
    accepted = list(models(of))
    assert accepted
    for model in accepted:
        rendered = of.render(model)
        assert round_trip("render", messages.rendered(rendered)) == rendered
        request = {"id": 1, "function": "recreate", "protocol": 1, "settings": {}}
        valid(
            "RecreateRequest",
            {**request, "old": messages.rendered(rendered), "new": messages.rendered(rendered)},
        )


@pytest.mark.parametrize("name", PROVIDERS)
def test_observations_of_own_provider_fit_the_schema(name: str) -> None:
    of = subject(name)
    model = build_deployment(of.first())
    assert of.cases.statuses
    for case in of.cases.statuses:
        observation = of.observe(model, of.live(model, case.status))
        assert round_trip("observe", messages.observed(observation)) == observation


@pytest.mark.parametrize("name", PROVIDERS)
def test_refusals_of_own_provider_fit_the_schema(name: str) -> None:
    of = subject(name)
    refused = build_deployment({**of.first(), "podTemplate": {"metadata": {"labels": {"app": "mine"}}}})
    problems = of.provider.supports(refused, of.schema)

    assert list(round_trip("supports", list(problems))) == list(problems)


@pytest.mark.parametrize("name", ["kaito", "dynamo", "kuberay"])
def test_probes_of_own_provider_fit_the_schema(name: str) -> None:
    of = subject(name)
    missing = of.provider.probe({})

    assert isinstance(missing, UnsupportedSchema)
    assert round_trip("probe", messages.schema(of.schema)) == of.schema
    assert round_trip("probe", {"missing": list(missing.missing)}) == missing


@pytest.mark.parametrize("name", PROVIDERS)
def test_specs_read_back_by_own_provider_fit_the_schema(name: str) -> None:
    of = subject(name)
    rendered = of.render(model := build_deployment(of.first()))
    assert of.provider.read_back is not None
    guesses = of.provider.read_back(of.live(model, None), rendered.helpers)

    assert list(round_trip("readBack", {"specs": list(guesses)}).specs) == list(guesses)


def described(provider: Provider) -> dict[str, Any]:
    """Return what a program in another language would describe a provider with, as far as it is data."""
    return {
        "protocol": 1,
        "name": provider.name,
        "title": provider.title,
        "version": provider.version,
        "documentation": provider.documentation,
        "capabilities": {
            "engines": provider.capabilities.engines,
            "servingModes": provider.capabilities.serving_modes,
            "cpuSupport": provider.capabilities.cpu_support,
            "gpuSupport": provider.capabilities.gpu_support,
        },
        "upstream": {
            "group": provider.upstream.group,
            "plural": provider.upstream.plural,
            "kind": provider.upstream.kind,
            "version": provider.upstream.version,
        },
        "functions": ["recreate", "readBack"]
        if provider.upstream.version
        else ["probe", "recreate", "readBack"],
        "selectionRules": [
            {"condition": rule.condition, "priority": rule.priority, "reason": rule.reason}
            for rule in provider.selection_rules
        ],
        "helperKinds": provider.helper_kinds,
        "scaled": provider.scaled,
        "ignoredDifferences": provider.ignored_differences,
        "namedByContent": provider.named_by_content,
        "settles": provider.settles,
        "namesGeneration": provider.names_generation,
        "editsRecreate": provider.edits_recreate,
    }


@pytest.mark.parametrize("name", PROVIDERS)
def test_own_provider_can_be_described(name: str) -> None:
    provider = subject(name).provider

    description = round_trip("describe", described(provider))

    assert (description.capabilities, description.upstream, description.selection_rules) == (
        provider.capabilities,
        provider.upstream,
        provider.selection_rules,
    )
