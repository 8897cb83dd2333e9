"""The Python rules, the CEL text of the CRD and the structural schema say the same (the API server's word on it is
in tests/integration/admission/test_crds.py)."""

from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from kubefoundry_sdk._api import crd, structure, validation
from kubefoundry_sdk._api.rules import RULES
from support.crd_rules import broken
from support.refused_specs import REFUSED, Refused
from support.sampled_cases import examples
from support.schema_values import values

SCHEMA: dict[str, Any] = crd.model_deployments()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["spec"]
MESSAGES = {rule.message for rule in RULES}
BY_JSON_SCHEMA = Draft202012Validator(SCHEMA)


def _by_python(spec: dict[str, Any]) -> list[str]:
    return sorted(problem.message for problem in validation.validate(spec) if problem.message in MESSAGES)


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(values(SCHEMA))
def test_python_and_cel_break_the_same_rules(spec: dict[str, Any]) -> None:
    assert _by_python(spec) == sorted(broken(validation.default(spec), SCHEMA))


@pytest.mark.parametrize("refused", REFUSED, ids=lambda it: it.name)
def test_cel_refuses_what_the_table_says(refused: Refused) -> None:
    assert refused.message in list(broken(validation.default(refused.spec), SCHEMA))


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(values(SCHEMA, odd=True))
def test_our_reading_of_the_schema_is_that_of_json_schema(spec: Any) -> None:
    stored = structure.defaulted(spec, SCHEMA)
    problems = list(structure.problems(stored, SCHEMA, "spec"))

    twice = [problem for problem in problems if problem.message.startswith("repeats")]
    assert (len(problems) > len(twice)) == (not BY_JSON_SCHEMA.is_valid(stored)), problems
