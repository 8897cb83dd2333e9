"""YAML that others wrote: read, or refused with a reason."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk.api import foreign_yaml


@given(st.text())
def test_every_text_is_decoded_or_refused(text: str) -> None:
    with suppress(foreign_yaml.Unreadable):
        foreign_yaml.decode(text)
