"""Whatever others write as JSON can be read, compared, copied and sent on."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.foreign_json import LEVELS, Unreadable, decode, encode, nested

TEXTS = st.text(st.characters(codec=None), max_size=8)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


def depth(value: Any) -> int:
    levels = 0
    while nested(value, levels):
        levels += 1
    return levels


def deep(levels: int, opener: str = '{"a":', closer: str = "}") -> bytes:
    return (opener * levels + "1" + closer * levels).encode()


@given(VALUES)
def test_shallow_document_is_decoded_like_json(value: Any) -> None:
    raw = json.dumps(value).encode()
    clean = json.loads(
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )

    assert same(decode(raw), clean)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, LEVELS - 1, LEVELS, LEVELS + 1, 960, 1000, 10_000, 300_000])
@pytest.mark.parametrize(
    ("opener", "closer"),
    [('{"a":', "}"), ("[", "]"), ('[{"a":0},{"]}\\"[{":', "}]"), ('{"b":[[],{}],"a\\\\":', "}")],
    ids=["maps", "lists", "both", "with others beside"],
)
def test_document_of_any_depth_is_decoded_and_usable(levels: int, opener: str, closer: str) -> None:
    read = decode(deep(levels, opener, closer))

    assert depth(read) <= LEVELS + 1
    if levels > LEVELS:
        assert depth(read) == LEVELS + 1, "a cut shows: it is deeper than any rule allows"
    assert same(copy.deepcopy(read), read)
    assert decode(encode(read)) == read


def test_json_beside_too_deep_value_is_kept() -> None:
    raw = b'{"items":[{"name":"a","x":' + deep(5000) + b'},{"name":"b","x":[1,"]"]}],"rest":"\\"["}'

    read = decode(raw)

    assert [item["name"] for item in read["items"]] == ["a", "b"]
    assert (read["items"][1]["x"], read["rest"]) == ([1, "]"], '"[')


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"{",
        b"[" * 5000,
        b'{"a":' * 5000,
        b"]" * 5000,
        b"\xff\xfe",
        b'{"a"',
        b"1" * 5000 + b"x",
    ],
    ids=lambda raw: repr(raw[:8]),
)
def test_invalid_json_is_unreadable(raw: bytes) -> None:
    with pytest.raises(Unreadable):
        decode(raw)


@pytest.mark.parametrize("raw", [b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"9" * 5000])
def test_json_number_out_of_range_is_read_as_null(raw: bytes) -> None:
    assert decode(b'{"a":' + raw + b"}") == {"a": None}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_non_finite_number_is_not_encoded(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"a": value})


@given(VALUES)
def test_document_is_equal_in_json_and_yaml(value: Any) -> None:
    sent = encode({"a": value})

    read = json.loads(sent)
    assert decode(sent) == read
    assert b"\\ud8" not in sent.replace(b"\\\\", b"")
    json.dumps(read, ensure_ascii=False).encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encoded_text_is_the_same_for_yaml(text: str) -> None:
    assert yaml.safe_load(encode({"text": text}).decode()) == {"text": text}
