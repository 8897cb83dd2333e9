"""The public names of the selector, and those of the last release."""

from __future__ import annotations

import pytest

import kubefoundry_selector


@pytest.mark.parametrize("name", kubefoundry_selector.__all__)
def test_public_name_can_be_imported(name: str) -> None:
    assert getattr(kubefoundry_selector, name) is not None


def test_renamed_name_warns_with_the_new_one() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"^kubefoundry_selector.run is deprecated: import run_selector$"
    ):
        value = kubefoundry_selector.run

    assert value is kubefoundry_selector.run_selector


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Shop'"):
        kubefoundry_selector.Shop  # noqa: B018
