"""Warnings that the API server sends with an answer."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._cluster.transport import warning


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('299 - "provider is not registered"', "provider is not registered"),
        (r'299 - "unknown field \"a\""', 'unknown field "a"'),
        ("something else", "something else"),
    ],
)
def test_warning_header_is_decoded(header: str, text: str) -> None:
    assert warning(header) == text
