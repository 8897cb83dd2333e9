"""Texts that are documents: an edit changes only its own fields, and hostile text does no harm."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubefoundry_sdk._api import foreign_yaml
from kubefoundry_sdk._provider.contract import Document
from kubefoundry_sdk._provider.write import documents

KIND = Document("Thing", ("spec", "text"), yaml.safe_dump)


def thing(content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    return {"kind": "Thing", "spec": {"text": text, "other": 1}}


def rebased(applied: Any, old: Any, new: Any) -> Any:
    result = documents.rebase([KIND], thing(applied), thing(old), thing(new))
    return result["spec"]["text"]


def test_only_what_the_user_changed_is_changed() -> None:
    text = rebased({"a": 1, "b": [{"n": 1}]}, {"a": 2, "b": [{"n": 1}]}, {"a": 2, "b": [{"n": 5}]})

    assert yaml.safe_load(text) == {"a": 1, "b": [{"n": 5}]}


def test_unchanged_document_keeps_its_text() -> None:
    assert rebased("{a: 1}   # mine", {"a": 2}, {"a": 2}) == "{a: 1}   # mine"
    # The user asks for what is there already.
    assert rebased("{a: 3}   # mine", {"a": 2}, {"a": 3}) == "{a: 3}   # mine"


def test_texts_of_other_kinds_are_texts() -> None:
    old, new = thing({"a": 2}), thing({"a": 3})
    applied = {**thing({"a": 1, "b": 1}), "kind": "Other"}

    assert documents.rebase([KIND], applied, old, {**new, "kind": "Other"})["spec"] == new["spec"]


BOMB = "a: &a [x, x]\n" + "\n".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]" for n in range(20)
)


@pytest.mark.parametrize(
    "applied",
    [
        pytest.param(BOMB, id="references that stand for a million values"),
        pytest.param("[" * 4096, id="deep and unfinished"),
        pytest.param("[" * 4096 + "]" * 4096, id="deep"),
        pytest.param("a: " + "x" * foreign_yaml.LIMIT, id="large"),
        pytest.param("a: &a [*a]", id="in itself"),
        pytest.param("!!python/object/apply:os.system [id]", id="a tag that is no data"),
        pytest.param("{[]: 1}", id="a key that is none"),
        pytest.param("2026-13-45", id="a date that is none"),
        pytest.param("\x00", id="no text"),
    ],
)
def test_applied_text_that_is_no_document_is_replaced(applied: str) -> None:
    assert yaml.safe_load(rebased(applied, {"a": 2}, {"a": 3})) == {"a": 3}
