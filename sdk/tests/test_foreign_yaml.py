"""YAML that others wrote: read, or refused with a reason."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import foreign_yaml


@given(st.text())
def test_every_text_is_decoded_or_refused(text: str) -> None:
    with suppress(foreign_yaml.Unreadable):
        foreign_yaml.decode(text)


def test_date_is_text_in_fields_and_files() -> None:
    text = "a: 2024-01-01"

    assert [foreign_yaml.decode(text), foreign_yaml.document(text)] == [{"a": "2024-01-01"}] * 2


def test_repeated_key_is_refused_only_in_files() -> None:
    text = "a: 1\na: 2"

    assert foreign_yaml.decode(text) == {"a": 2}
    assert foreign_yaml.document(text, unique_keys=False) == {"a": 2}
    with pytest.raises(foreign_yaml.Unreadable, match="the key 'a' occurs twice"):
        foreign_yaml.documents(text)


def test_several_documents_are_refused_where_one_is_read() -> None:
    for read in (foreign_yaml.decode, foreign_yaml.document):
        with pytest.raises(foreign_yaml.Unreadable, match="2 YAML documents instead of one"):
            read("a\n---\nb")
