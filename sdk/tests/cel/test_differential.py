"""Our CEL against Google's (cel-expr-python, C++), on a table of expressions over a ModelDeployment.

`expressions.txt` holds the expressions; `divergences.tsv` those where the two differ, with both answers. A
divergence that disappears fails the test too, so that the table in the README stays true.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cel_expr_python import cel as google  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_strings  # type: ignore[import-untyped]
from celpy import celtypes

from kubefoundry_sdk import cel
from kubefoundry_sdk._cel.evaluation import Budget, Evaluation
from kubefoundry_sdk._cel.lint import Finding, infer
from kubefoundry_sdk._cel.schema import VARIABLES
from kubefoundry_sdk._cel.source import BadSource, parse

HERE = Path(__file__).parent
ERROR = "error"

SPEC: dict[str, Any] = {
    "model": {"id": "meta-llama/Llama-3.1-8B-Instruct", "source": "huggingface"},
    "engine": {
        "type": "vllm",
        "contextLength": 8192,
        "trustRemoteCode": False,
        "args": {"quantization": "awq", "gpu-memory-utilization": "0.9"},
    },
    "serving": {"mode": "aggregated"},
    "scaling": {"replicas": 2},
    "resources": {"gpu": {"count": 2, "type": "nvidia.com/gpu"}, "memory": "32Gi"},
    "env": [
        {"name": "HF_HOME", "value": "/models"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
    ],
    "nodeSelector": {},
}
METADATA: dict[str, Any] = {
    "name": "llama",
    "namespace": "team-nlp",
    "labels": {"team": "nlp"},
    "annotations": {"kubefoundry.ai/reselect": "1"},
}
ENVIRONMENT = cel.environment(SPEC, METADATA)
GOOGLE = google.NewEnv(
    variables={"spec": google.Type.DYN, "metadata": google.Type.DYN}, extensions=[ext_strings.ExtStrings()]
)


def expressions() -> list[str]:
    lines = (HERE / "expressions.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


def divergences() -> dict[str, tuple[str, str]]:
    with (HERE / "divergences.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["expression"]: (row["ours"], row["google"]) for row in rows}


def ours(expression: str) -> str:
    """The answer of the product's own path: bounds, lint, evaluation; without its demand for a bool."""
    try:
        tree = parse(expression)
        infer(tree, VARIABLES)
        return canonical_ours(Evaluation(tree, ENVIRONMENT.values, Budget()).evaluate())
    except (BadSource, Finding):
        return ERROR
    except Exception:
        return ERROR


def googles(expression: str) -> str:
    try:
        return canonical_google(GOOGLE.compile(expression).eval(data={"spec": SPEC, "metadata": METADATA}))
    except Exception:
        return ERROR


KINDS = (
    (celtypes.BoolType, "bool", bool),
    (celtypes.IntType, "int", int),
    (celtypes.UintType, "uint", int),
    (celtypes.DoubleType, "double", float),
    (celtypes.StringType, "string", str),
)


def canonical_ours(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, celtypes.ListType):
        return f"[{', '.join(canonical_ours(item) for item in value)}]"
    if isinstance(value, celtypes.MapType):
        items = (f"{canonical_ours(k)}: {canonical_ours(v)}" for k, v in value.items())
        return f"{{{', '.join(sorted(items))}}}"
    name, plain = next((name, plain) for kind, name, plain in KINDS if type(value) is kind)
    return f"{name} {json.dumps(plain(value))}"


def canonical_google(value: Any) -> str:
    kind, plain = value.type().name().lower(), value.value()
    if kind == "error":
        return ERROR
    if plain is None:
        return "null"
    if isinstance(plain, list):
        return f"[{', '.join(canonical_google(item) for item in plain)}]"
    if isinstance(plain, dict):
        items = (f"{canonical_key(k)}: {canonical_google(v)}" for k, v in plain.items())
        return f"{{{', '.join(sorted(items))}}}"
    return f"{kind} {json.dumps(plain)}"


def canonical_key(key: Any) -> str:
    name = {bool: "bool", int: "int", str: "string"}[type(key)]
    return f"{name} {json.dumps(key)}"


@pytest.mark.parametrize("expression", expressions())
def test_same_answer_or_listed_divergence(expression: str) -> None:
    answers = ours(expression), googles(expression)
    listed = divergences().get(expression)
    if listed is None:
        assert answers[0] == answers[1]
    else:
        assert answers == listed
        assert listed[0] != listed[1], "no divergence any more: delete its row"


def test_every_divergence_is_an_expression_of_the_table() -> None:
    assert set(divergences()) <= set(expressions())
    assert len(expressions()) >= 150
