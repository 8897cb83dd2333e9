"""What `from kubefoundry_sdk import …` offers to whoever writes a provider."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import kubefoundry_sdk

LITERALS = {"LAST_WORDS", "ObservedPhase", "ReadyReason", "Object"}
"""Aliases of types, which cannot carry a docstring."""


@pytest.mark.parametrize("name", kubefoundry_sdk.__all__)
def test_a_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    value = getattr(kubefoundry_sdk, name)

    if name not in LITERALS:
        text = value.__doc__ or ""
        # what dataclasses and pydantic write by themselves says nothing
        assert len(text) >= 20 and not text.startswith(f"{name}("), f"{name} has no docstring"


def test_they_are_sorted_and_listed() -> None:
    assert kubefoundry_sdk.__all__ == sorted(
        kubefoundry_sdk.__all__, key=lambda name: (not name.isupper(), name.islower(), name)
    )
    assert set(kubefoundry_sdk.__all__) <= set(dir(kubefoundry_sdk))


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Shop'"):
        kubefoundry_sdk.Shop  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    program = (
        "import sys, json; before = set(sys.modules); import kubefoundry_sdk; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )

    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)

    heavy = [
        name
        for name in json.loads(done.stdout)
        if name.startswith(("pydantic", "aiohttp", "kubefoundry_sdk."))
    ]
    assert heavy == []
