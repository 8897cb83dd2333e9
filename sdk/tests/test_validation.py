from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from kubefoundry_sdk._api import spec_limits, validation
from kubefoundry_sdk._api.rules import RULES
from kubefoundry_sdk._api.validation import Problem
from kubefoundry_sdk.testing.generated import specs
from support.refused_specs import AGGREGATED, DISAGGREGATED, REFUSED, Refused, changed

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("refused", REFUSED, ids=lambda it: it.name)
def test_broken_rule_is_reported_with_its_message(refused: Refused) -> None:
    assert Problem(f"spec.{refused.field}", refused.message) in validation.validate(refused.spec)


def test_every_rule_has_a_spec_that_breaks_it() -> None:
    assert {rule.message for rule in RULES} == {refused.message for refused in REFUSED}


@pytest.mark.parametrize(
    ("resources", "problems"),
    [
        ({"cpuLimit": "500m"}, []),
        ({"cpu": "0.5", "cpuLimit": "500m"}, []),
        ({"cpu": 4, "cpuLimit": "4e0"}, []),
        *(
            (
                {"cpuLimit": nothing},
                [Problem("spec.resources.cpuLimit", "must be more than 0: leave it out for no limit")],
            )
            for nothing in (0, "0", "0m", "0.0")
        ),
        (
            {"cpu": "4", "cpuLimit": "3999m"},
            [
                Problem(
                    "spec.resources.cpuLimit",
                    "3999m is less than resources.cpu, which is 4: raise the limit",
                )
            ],
        ),
    ],
)
def test_cpu_limit_is_refused_below_the_request(resources: dict[str, Any], problems: list[Problem]) -> None:
    spec = changed(AGGREGATED, engine__type="llamacpp", resources=resources)

    assert validation.validate(spec) == problems


@pytest.mark.parametrize(
    "spec",
    [
        AGGREGATED,
        DISAGGREGATED,
        changed(AGGREGATED, resources__gpu__count=2, scaling__replicas=0),
        changed(AGGREGATED, engine__type="llamacpp", resources={"memory": 1, "cpu": "0.5"}),
        changed(AGGREGATED, model={"source": "custom"}, image="registry:5000/a/b:v1@sha256:00"),
        changed(AGGREGATED, provider={"name": "somebody", "overrides": {"any": [{"thing": None}]}}),
        changed(AGGREGATED, env=[{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
        changed(AGGREGATED, image="", serving=None, engine__contextLength=None, env=None),
        changed(DISAGGREGATED, resources={}, scaling__prefill__replicas=0),
    ],
)
def test_valid_spec_has_no_problem(spec: dict[str, Any]) -> None:
    assert validation.validate(spec) == []


@given(specs())
def test_corpus_of_valid_specs_has_no_problem(spec: dict[str, Any]) -> None:
    assert validation.validate(spec) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_example_is_valid_without_warnings(path: Path) -> None:
    spec = yaml.safe_load(path.read_text())["spec"]

    assert validation.validate(spec) == []
    assert validation.warnings(spec) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("bad/*.yaml")), ids=lambda path: path.stem)
def test_invalid_example_has_one_problem(path: Path) -> None:
    assert len(validation.validate(yaml.safe_load(path.read_text())["spec"])) == 1


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"engine__type": "vlm"}, "engine.type", 'must be one of vllm, sglang, trtllm, llamacpp, not "vlm"'),
        ({"engine": "vllm"}, "engine", 'must be a map of fields, not "vllm"'),
        (
            {"engine__contextLength": "8192"},
            "engine.contextLength",
            'must be a whole number, not "8192": remove the quotes',
        ),
        ({"engine__contextLength": 1.5}, "engine.contextLength", "must be a whole number, not 1.5"),
        ({"engine__contextLength": True}, "engine.contextLength", "must be a whole number, not true"),
        ({"engine__contextLength": 0}, "engine.contextLength", "must be at least 1, not 0"),
        (
            {"engine__trustRemoteCode": "true"},
            "engine.trustRemoteCode",
            'must be true or false, not "true": remove the quotes',
        ),
        ({"engine__args": {"x": 1}}, "engine.args[x]", "must be text, not 1: put it in quotes"),
        ({"engine__args": {"x": True}}, "engine.args[x]", "must be text, not true: put it in quotes"),
        ({"engine__args": {"x": [1]}}, "engine.args[x]", "must be text, not [1]"),
        ({"engine__contextLength": "many"}, "engine.contextLength", 'must be a whole number, not "many"'),
        ({"scaling__replicas": 2**31}, "scaling.replicas", "must be at most 2147483647, not 2147483648"),
        ({"env": {"name": "A"}}, "env", 'must be a list, not {"name": "A"}'),
        ({"env": [{"value": "x"}]}, "env[0].name", "is required"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "env[1]", 'repeats name "A"'),
        ({"env": [{"name": f"A{i}"} for i in range(257)]}, "env", "may have 256 entries at most, not 257"),
        ({"image": "a" * 1025}, "image", "may have 1024 characters at most, not 1025"),
        ({"provider": {"name": ""}}, "provider.name", "must not be empty"),
        (
            {"provider": {"name": "Dynamo"}},
            "provider.name",
            'must be a name of lower-case letters, digits and inner dashes, not "Dynamo"',
        ),
        (
            {"model__id": "--model x"},
            "model.id",
            'must be a model id such as "meta-llama/Llama-3.1-8B-Instruct", not "--model x"',
        ),
        (
            {"resources__memory": "1K"},
            "resources.memory",
            'must be a quantity such as "16Gi", "500m" or 4, not "1K"',
        ),
        (
            {"resources__cpu": 0.5},
            "resources.cpu",
            'must be a quantity such as "16Gi", "500m" or 4, not 0.5: put it in quotes',
        ),
        ({"resources__cpu": -1}, "resources.cpu", "must be at least 0, not -1"),
        (
            {"resources__gpu__type": "gpu"},
            "resources.gpu.type",
            'must be a resource name such as "nvidia.com/gpu", not "gpu"',
        ),
        (
            {"secrets": {"huggingFaceToken": "hf token"}},
            "secrets.huggingFaceToken",
            'must be a name of lower-case letters, digits, inner dashes and dots, not "hf token"',
        ),
        (
            {"podTemplate__metadata__labels": {"a b": "x"}},
            "podTemplate.metadata.labels[a b]",
            "the key must be a label key: letters, digits and inner _ . -, optionally behind a domain and a slash",
        ),
    ],
)
def test_wrong_value_is_reported_readably(changes: dict[str, Any], field: str, message: str) -> None:
    assert validation.validate(changed(AGGREGATED, **changes)) == [Problem(f"spec.{field}", message)]


@pytest.mark.parametrize("model_id", ["org/-model", "org/--trust-remote-code", "/models/-", "org/-1"])
def test_name_that_looks_like_a_flag_is_refused(model_id: str) -> None:
    spec = changed(AGGREGATED, model__id=model_id)

    assert validation.validate(spec) == [
        Problem(
            "spec.model.servedName",
            "the last part of model.id begins with a dash, so engines take it for a flag: set model.servedName",
        )
    ]


@pytest.mark.parametrize(
    "model",
    [
        {"id": "org/-model", "servedName": "model"},
        {"id": "org/-/model"},
        {"id": "org/:x"},
        {"id": "/models/x/"},
    ],
)
def test_other_unusual_model_ids_are_valid(model: dict[str, Any]) -> None:
    assert validation.validate(changed(AGGREGATED, model=model)) == []


def test_model_in_an_image_has_no_name_from_its_id() -> None:
    model = {"source": "custom", "id": "org/-model"}

    assert validation.validate(changed(AGGREGATED, model=model, image="engine")) == []


@pytest.mark.parametrize("spec", [None, [], "x"])
def test_spec_of_another_type_is_reported(spec: Any) -> None:
    assert [problem.path for problem in validation.validate(spec)] == ["spec"]


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        (AGGREGATED, []),
        (DISAGGREGATED, []),
        (
            changed(AGGREGATED, model={"source": "custom", "servedName": "x"}, image="i"),
            ["servedName is ignored for custom source"],
        ),
        (
            changed(AGGREGATED, scaling__prefill={}),
            ["scaling.prefill and scaling.decode are ignored in aggregated mode"],
        ),
        (
            changed(AGGREGATED, resources__memory=8),
            ["resources.memory is 8, less than 1Mi, in which no engine starts: add a unit, such as 8Gi"],
        ),
        (
            changed(DISAGGREGATED, scaling__decode__memory="16"),
            [
                "scaling.decode.memory is 16, less than 1Mi, in which no engine starts: add a unit, such as 8Gi"
            ],
        ),
        (changed(AGGREGATED, resources__memory="1Mi"), []),
    ],
)
def test_ignored_field_is_warned_about(spec: dict[str, Any], warnings: list[str]) -> None:
    assert validation.warnings(spec) == warnings


HINT = "write ORGANIZATION/MODEL, such as Qwen/Qwen3-0.6B"
NO_NAME = f"and no model on the Hugging Face hub has such a name: {HINT}"
ADDRESS = "model.id has the address of the Hugging Face hub, which engines add themselves: write"


@pytest.mark.parametrize(
    ("engine", "id_", "warning"),
    [
        ("vllm", "qwen3:0.6b", f"model.id is qwen3:0.6b, {NO_NAME}"),
        ("llamacpp", "qwen3:0.6b", f"model.id is qwen3:0.6b, {NO_NAME}"),
        ("sglang", "gpt2@main", f"model.id is gpt2@main, {NO_NAME}"),
        ("vllm", "a:" + "b" * 200, f"model.id is a:{'b' * 98}…, {NO_NAME}"),
        (
            "vllm",
            "Qwen3",
            f"model.id is Qwen3, without an organization: unless your provider knows this name, {HINT}",
        ),
        (
            "llamacpp",
            "gpt2",
            "model.id is gpt2, and llama.cpp finds a model on the Hugging Face hub only with its organization: "
            f"{HINT}-GGUF",
        ),
        ("vllm", "https://huggingface.co/Qwen/Qwen3-0.6B/tree/main", f"{ADDRESS} Qwen/Qwen3-0.6B"),
        ("llamacpp", "hf.co/Qwen/Qwen3-0.6B-GGUF:Q8_0", f"{ADDRESS} Qwen/Qwen3-0.6B-GGUF:Q8_0"),
        ("vllm", "HTTPS://HuggingFace.co/", f"{ADDRESS} ORGANIZATION/MODEL"),
    ],
)
def test_model_id_that_is_not_on_the_hub_is_warned_about(engine: str, id_: str, warning: str) -> None:
    spec = changed(AGGREGATED, model={"id": id_}, engine={"type": engine})

    assert validation.validate(spec) == []
    assert validation.warnings(spec) == [warning]
    custom = {**spec, "model": {"id": id_, "source": "custom"}, "image": "example.com/model:1"}
    assert validation.warnings(custom) == []


@pytest.mark.parametrize(
    "id_",
    [
        "gpt2",
        "bert-base-uncased",
        "t5-small",
        "phi-3.5-mini-instruct",
        "meta-llama/Llama-3.1-8B-Instruct",
        "unsloth/Qwen3-0.6B-GGUF:Q4_K_M",
        "org/model@main",
        "hf.company/model",
        "org/repository/folder/file.gguf",
        "/models/qwen3:0.6b",
        "./Qwen3",
        "s3://bucket/model",
    ],
)
def test_usual_model_id_is_not_warned_about(id_: str) -> None:
    for engine in ("vllm", "sglang", "trtllm", *(["llamacpp"] if "/" in id_ else [])):
        assert validation.warnings({"model": {"id": id_}, "engine": {"type": engine}}) == []


def test_defaults_are_static_and_complete() -> None:
    assert validation.default(
        {"resources": {"gpu": {}}, "scaling": {"prefill": {"memory": None}}, "image": None}
    ) == {
        "model": {"source": "huggingface"},
        "engine": {"trustRemoteCode": False},
        "serving": {"mode": "aggregated"},
        "scaling": {"replicas": 1, "prefill": {"replicas": 1}},
        "resources": {"gpu": {"count": 0, "type": "nvidia.com/gpu"}},
    }


@given(specs())
def test_defaulting_adds_only_and_once(spec: dict[str, Any]) -> None:
    complete = validation.default(spec)

    assert validation.default(complete) == complete
    assert _within(spec, complete)


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(key in whole and _within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(_within, part, whole))
    return bool(part == whole)


def test_defaulting_leaves_the_argument_alone() -> None:
    spec: dict[str, Any] = {"scaling": {}}

    validation.default(spec)["scaling"]["replicas"] = 7

    assert spec == {"scaling": {}}
    assert validation.default({})["scaling"] == {"replicas": 1}


def deep(levels: int, kind: str) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value} if kind == "maps" else [value]
    return value


def with_overrides(overrides: Any) -> dict[str, Any]:
    return {**AGGREGATED, "provider": {"name": "acme", "overrides": overrides}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["maps", "lists"])
@pytest.mark.parametrize("levels", [61, 62, 200, 500, 960, 1000, 100_000])
def test_spec_nested_too_deep_has_this_one_problem(levels: int, kind: str) -> None:
    problems = validation.validate(with_overrides({"deep": deep(levels - 1, kind)}))

    # spec, provider and overrides are three levels.
    message = "is nested more than 64 levels deep; use fewer levels"
    reported = [] if levels + 2 <= spec_limits.DEPTH else [("spec.provider", message)]
    assert [(problem.path, problem.message) for problem in problems] == reported


@pytest.mark.parametrize(
    "spec",
    [
        deep(1000, "lists"),
        {**AGGREGATED, "env": deep(1000, "maps")},
        {**AGGREGATED, "unknown": deep(1000, "maps")},
        {**AGGREGATED, "x" * 5000: deep(1000, "maps")},
    ],
    ids=["itself", "a list", "an unknown field", "a long one"],
)
def test_wherever_it_is_deep(spec: Any) -> None:
    [problem] = validation.validate(spec)

    assert "64 levels" in problem.message
    assert len(problem.path) <= 200


@pytest.mark.parametrize(
    "large",
    [
        with_overrides({"text": "x" * spec_limits.SIZE}),
        with_overrides({f"key{number}": "x" * 3000 for number in range(60)}),
        {**AGGREGATED, "env": [{"name": f"N{number}", "value": "é" * 300} for number in range(250)]},
        {**AGGREGATED, "engine": {"type": "vllm", "args": {f"a{n}": "x" * 16384 for n in range(9)}}},
    ],
    ids=["one text", "many", "characters of several bytes", "within all other bounds"],
)
def test_spec_that_is_too_large_is_reported(large: dict[str, Any]) -> None:
    [problem] = validation.validate(large)

    assert problem.path == "spec"
    assert problem.message.startswith("may have 131072 bytes as JSON, not ")


def test_overrides_have_a_number_of_keys_at_most() -> None:
    [problem] = validation.validate(with_overrides({f"key{number}": 1 for number in range(65)}))

    assert (problem.path, problem.message) == (
        "spec.provider.overrides",
        "may have 64 entries at most, not 65",
    )
