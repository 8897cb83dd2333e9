"""What is reported of a rule before it runs, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk import cel

PROBLEMS = {
    "spec.engin.type == 'vllm'": (6, "no field 'engin' in spec (did you mean 'engine'?)"),
    "spec.engine.typ == 'vllm'": (13, "no field 'typ' in spec.engine (did you mean 'type'?)"),
    "spec['engin'].type == 'vllm'": (6, "no field 'engin' in spec (did you mean 'engine'?)"),
    "metadata.uid == 'x'": (10, "no field 'uid' in metadata"),
    "spek.engine.type == 'vllm'": (1, "unknown variable 'spek' (did you mean 'spec'?)"),
    "spec.model.id.startWith('a')": (15, "unknown function 'startWith' (did you mean 'startsWith'?)"),
    "sise(spec.env) > 1": (1, "unknown function 'sise' (did you mean 'size'?)"),
    "spec.env.exists(x, x.nme == 'A')": (22, "no field 'nme' in x (did you mean 'name'?)"),
    "spec.env.filter(x, x.value == 'A')[0].nme == 'A'": (
        39,
        "no field 'nme' in this object (did you mean 'name'?)",
    ),
    "spec.env.exists(x, y == 'A')": (20, "unknown variable 'y'"),
    "has(spec.engin)": (10, "no field 'engin' in spec (did you mean 'engine'?)"),
    "has(spec)": (1, "has() needs one field selection, as has(spec.resources.gpu)"),
    "spec.engine.type": (1, "the rule returns a string, not a bool"),
    "[true]": (1, "the rule returns a list, not a bool"),
    "spec.engine.type == 1": (21, "a string is never equal to an int"),
    "spec.image == null": (15, "a string is never equal to null; ask with has() whether a field is there"),
    "spec.engine.type in [1, 2]": (21, "a string is never equal to an int"),
    "spec.engine.type in 'vllm'": (21, "'in' needs a list or a map, this is a string"),
    "spec.engine < spec.engine": (15, "an object has no order"),
    "spec.resources.gpu.count + 'a' == 'b'": (28, "no arithmetic between an int and a string"),
    "spec.engine.trustRemoteCode + 1 == 2": (31, "a bool does not support this operator"),
    "!spec.engine.type": (2, "'!' needs a bool, this is a string"),
    "spec.scaling.replicas && true": (1, "&& and || need bools, this is an int"),
    "spec.engine.type ? true : false": (1, "the condition before '?' is a string, not a bool"),
    "(true ? 1 : 'a') == 1": (13, "the choices of '?:' differ: an int and a string"),
    "spec.engine.type.x == 1": (18, "no field 'x' in a string"),
    "spec.engine.type[0] == 'v'": (1, "a string has no elements"),
    "spec.env['a'] == 1": (10, "a list is indexed by a number, this is a string"),
    "spec.nodeSelector[1] == 'a'": (19, "a map is indexed by a string, this is an int"),
    "spec.engine.type.exists(x, true)": (1, "exists() needs a list or a map, this is a string"),
    "spec.env.exists(x)": (10, "exists() takes a variable and an expression"),
    "spec.env.exists(x.y, true)": (17, "the first argument of exists() must be a plain name"),
    "spec.env.all(x, x.name)": (17, "the expression of all() gives a string, not a bool"),
    "spec.model.id.contains()": (15, "contains() takes 1 arguments, not 0"),
    "spec.model.id.contains(1)": (24, "contains() needs a string, this is an int"),
    "quantity('1Gi') == '1Gi'": (20, "a quantity is never equal to a string"),
    "b'a' == b'a'": (1, "bytes are not supported in rules"),
    ".spec.engine.type == 'vllm'": (1, "a leading '.' is not supported"),
    "": (1, "syntax error: the rule ends too early"),
    "true &&": (8, "syntax error: the rule ends too early"),
    "spec.engine.type = 'vllm'": (18, "syntax error at '='"),
    "a b": (3, "syntax error at 'b'"),
    "'open": (1, "the string does not end"),
    "'a' == '\\q'": (9, "unknown escape in a string"),
    "r'\\'": (2, "the string does not end"),
    "'a\nb' == 'a'": (1, "a string must end on its line; write \\n"),
    "'''a\nb''' == 'a'": (1, "a string must end on its line; write \\n"),
}


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.items())
def test_first_problem_with_its_column(text: str, expected: tuple[int, str]) -> None:
    compiled = cel.compile(text)

    assert isinstance(compiled, cel.InvalidRule)
    assert (compiled.problem.column, compiled.problem.text) == expected


def test_problem_on_a_later_line_names_it() -> None:
    compiled = cel.compile("spec.engine.type == 'vllm' &&\n  spec.engin.type == 'vllm'")

    assert isinstance(compiled, cel.InvalidRule)
    assert str(compiled.problem).startswith("line 2, column 8: no field 'engin'")


@pytest.mark.parametrize(
    "text",
    [
        "spec.engine.args['anything'] == 'x'",
        "spec.engine.args.anything == 'x'",
        "metadata.labels.team == 'x'",
        "spec.provider.overrides.head.anything == 1",
        "spec.resources.memory == '1Gi' || spec.resources.memory == 5",
        "spec.env.exists(x, x.valueFrom.secretKeyRef.key == 'token')",
        "{'a': {'b': 1}}.a.b == 1",
        "[dyn(1), dyn('a')].exists(x, x.anything)",
        "quantity(spec.resources.memory).compareTo(quantity('16Gi')) > 0",
        "spec.engine.type == 'vllm' // a comment with 'quotes",
        '"it\'s" == \'say "x"\' || "//" == r\'\\d\'',
    ],
)
def test_good_rules_and_dynamic_parts_pass(text: str) -> None:
    assert isinstance(cel.compile(text), cel.Rule)


TOKENS = st.sampled_from(
    ["spec", ".engine", ".type", ".env", "metadata.labels", "['a']", "[0]", "==", "<", "in", "&&", "||", "!", "-",
     "+", "%", "(", ")", "[", "]", "{", "}", ":", "?", ",", "1", "1.5", "2u", "'a'", '"', "'", "\\", "\n", "//",
     "true", "null", "has(", "size(", ".exists(x,", ".map(x,", "x", ".matches(", "quantity(", ".split(", "type("]
)  # fmt: skip


@given(st.lists(TOKENS, max_size=40).map(" ".join))
def test_any_text_is_a_rule_or_has_a_problem_and_never_raises(text: str) -> None:
    environment = cel.environment({"engine": {"type": "vllm"}, "env": [{"name": "a"}]}, {"name": "m"})

    compiled = cel.compile(text)

    if isinstance(compiled, cel.Rule):
        assert isinstance(cel.match(compiled, environment), bool | cel.Failure)
    else:
        assert compiled.problem.column >= 1
