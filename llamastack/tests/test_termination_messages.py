"""What a container leaves when it ends is the container's: any text must do."""

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
def test_only_texts_are_reported(text: str, expected: dict[str, str]) -> None:
    assert _facts(text) == expected
