"""Tests that any text in a termination message is accepted, because the container writes it."""

from __future__ import annotations

import pytest

from kubefoundry_llamastack.observe.containers import _facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 4096, {}),
        ('{"package":' * 300 + "1" + "}" * 300, {}),
        ('{"package": ' + "[" * 900 + "]" * 900 + "}", {}),
        (
            '{"package": "p", "version": 1, "warnings": ["w", {}, null]}',
            {"package": "p", "warnings": "WARNING: w"},
        ),
        ("NaN", {}),
        ('{"warnings": "w"}', {}),
    ],
)
def test_termination_message_reports_only_texts(text: str, expected: dict[str, str]) -> None:
    assert _facts(text) == expected
