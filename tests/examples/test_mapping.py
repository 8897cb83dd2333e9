"""The providers without code: the kit accepts each, and each renders and observes as the one in Python does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its types are another package

from kubefoundry_conformance.main import main
from kubefoundry_kserve.provider import provider as kserve
from kubefoundry_sdk import Object, Provider, Schema
from kubefoundry_sdk._cel.schema import Record
from kubefoundry_sdk._functions import main as functions_process
from kubefoundry_sdk._functions.description import ProviderDescription
from kubefoundry_sdk._functions.mapping import document, expression, template, variables
from kubefoundry_sdk._functions.mapping.provider import load
from kubefoundry_sdk.testing import deployment, specs
from kubefoundry_widgets.provider import provider as widgets
from support.sampled_cases import examples

ROOT = Path(__file__).resolve().parents[2]
MAPPINGS = ROOT / "examples" / "mapping"
GUIDE = (ROOT / "docs" / "mapping.md").read_text(encoding="utf-8")
FILES = {
    "widgets": ("examples/provider/widgets.crd.yaml", "examples/provider/cases.yaml"),
    "kserve": ("examples/kserve/tests/llminferenceservices.crd.yaml", "examples/kserve/cases.yaml"),
}
IMAGES = {"vllm": "example.com/vllm:1"}
WIDGETS, KSERVE = load(MAPPINGS / "widgets.yaml", IMAGES), load(MAPPINGS / "kserve.yaml", {})


def with_images() -> Provider:
    """Return the Widget provider with default images, which the conformance kit needs for REN-7."""
    return WIDGETS


def run_kit(name: str, *subject: str) -> int:
    crd, cases = (str(ROOT / file) for file in FILES[name])
    return main(["provider", *subject, "--crd", crd, "--cases", cases, "--examples", "12"])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_mapping_passes_the_kit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_kit(name, "--mapping", str(MAPPINGS / f"{name}.yaml")) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_mapping_keeps_default_images(capsys: pytest.CaptureFixture[str]) -> None:
    code = run_kit("widgets", "--functions", f"{__name__}:with_images")

    report = capsys.readouterr().out
    assert code == 0, report
    assert "ok    REN-7" in report


def without_empty(value: Any) -> Any:
    """Return a value without empty maps and lists, which a mapping leaves out, but for those of KServe's router."""
    if isinstance(value, dict):
        return {
            key: without_empty(part)
            for key, part in value.items()
            if part not in ({}, []) or key in ("route", "gateway")
        }
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None, max_examples=examples(60))
@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None), image=st.booleans())
def test_widget_mapping_renders_as_the_python_one(spec: dict[str, Any], image: bool) -> None:
    model = deployment({**spec, **({"image": "example.com/mine:2"} if image else {})})
    python, schema = widgets(IMAGES), Schema("example.com/v1")

    gpu = model.spec.resources.gpu
    expected = [problem.replace(f" {gpu and gpu.type}:", ":") for problem in python.supports(model, schema)]
    if model.spec.model.source == "custom":
        # The mapping does not read the source.
        expected.append("Widgets has no place for model.source: remove it")

    problems = WIDGETS.supports(model, schema)

    # The mapping names each setting of pods.
    parts = {re.sub(r"(podTemplate\.(spec|container))\.\w+", r"\1", problem) for problem in problems}
    assert sorted(parts) == sorted(expected)
    if not problems:
        mine, other = WIDGETS.render(model, schema), python.render(model, schema)
        assert (mine.main, mine.image) == (without_empty(other.main), other.image)


@settings(deadline=None, max_examples=examples(60))
@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None))
def test_kserve_mapping_renders_as_the_python_one(spec: dict[str, Any]) -> None:
    model, python = deployment(spec), kserve()
    schema = Schema("serving.kserve.io/v1alpha1", frozenset({"labels"}))

    problems = KSERVE.supports(model, schema)

    assert bool(problems) >= bool(python.supports(model, schema))
    if not problems:
        mine, other = KSERVE.render(model, schema), python.render(model, schema)
        assert (mine.main, mine.image) == (without_empty(other.main), other.image)


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("ready", [0, 1, 2**31, -1, 1.5, "1", None, True, [1]])
@pytest.mark.parametrize("state", ["Starting", "Serving", "Broken", "Dancing"])
def test_widget_mapping_observes_as_the_python_one(state: str, ready: Any, replicas: int) -> None:
    model = deployment({"engine": {"type": "vllm"}, "scaling": {"replicas": replicas}})
    live: Object = {"status": {"state": state, "ready": ready}}

    mine, other = WIDGETS.observe(model, live), widgets(IMAGES).observe(model, live)

    # At 0 replicas, the mapping calls only an idle Widget scaled to zero, and not one that starts or is broken.
    if replicas or state == "Serving" or other.reason != "ScaledToZero":
        assert (mine.phase, mine.reason) == (other.phase, other.reason)
    assert (mine.replicas, mine.endpoint) == (other.replicas, other.endpoint)


def test_manifest_of_mapping_mounts_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    file = MAPPINGS / "kserve.yaml"

    with pytest.raises(SystemExit):
        functions_process.main(
            ["--name=kserve", f"--mapping={file}", "--default-image=vllm=x/y:1", "--print-manifest=reg/img:1"]
        )

    documents = {part["kind"]: part for part in yaml.safe_load_all(capsys.readouterr().out)}
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [mount], [volume] = container["volumeMounts"], pod["volumes"]
    assert container["command"] == ["kubefoundry-provider-functions", "--mapping=/mapping/mapping.yaml"]
    assert container["args"][:2] == ["--name=kserve", "--default-image=vllm=x/y:1"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/mapping")
    assert volume["configMap"]["name"] == documents["ConfigMap"]["metadata"]["name"]
    assert documents["ConfigMap"]["data"] == {"mapping.yaml": file.read_text(encoding="utf-8")}
    assert documents["ClusterRole"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--name=other"], "the mapping describes provider widgets, not other: give --name widgets"),
        (
            ["--name=widgets", "--command=x"],
            "--command and --set are for a program: remove them, or --mapping",
        ),
        (["--name=widgets", "--set=a=b"], "--command and --set are for a program: remove them, or --mapping"),
    ],
)
def test_unfit_flags_of_mapping_are_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        functions_process.main([f"--mapping={MAPPINGS / 'widgets.yaml'}", *arguments])

    assert ended.value.code == 1
    program = functions_process.PROGRAM
    assert capsys.readouterr().err == f"{program}: {problem}; see {program} --help\n"


def test_guide_shows_the_example() -> None:
    printed = GUIDE.split("```yaml\n")[1].split("```")[0]

    assert printed == (MAPPINGS / "widgets.yaml").read_text(encoding="utf-8")
    assert len(printed.splitlines()) <= 60


def test_guide_names_every_key_and_limit() -> None:
    own = document.MappingFile.model_fields.keys() - ProviderDescription.model_fields.keys()
    known = variables.status_scope(Record({}))

    assert [name for name in (*own, *known) if f"`{name}`" not in GUIDE] == []
    for words in (
        f"at most {document.MAX_CHARACTERS:,} characters and",
        f"at most {expression.MAX_STEPS:,} steps",
        f"at most {template.MAX_CHARACTERS:,} characters rendered",
        f"at most {variables.MAX_PARTS:,} values and {variables.MAX_LEVELS} levels",
    ):
        assert words in GUIDE


@pytest.mark.parametrize("name", FILES)
def test_mapping_fits_its_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "mapping.schema.json").read_text(encoding="utf-8"))

    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(yaml.safe_load((MAPPINGS / f"{name}.yaml").read_text()))
