"""A provider of an earlier contract never drops a newer field of a spec silently."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api.contract_version import CURRENT, ignored_fields, stated
from kubefoundry_sdk.spec import incompatibilities
from kubefoundry_sdk.testing import deployment
from support.things import PROVIDER, SPEC

NEWER: dict[str, Any] = {**SPEC, "engine": {**SPEC["engine"], "extraArgs": ["--repeated", "a"]}}
IGNORED = (
    "implements version 0.2 of the contract, and would ignore engine.extraArgs: ask an administrator to upgrade the "
    "provider, or remove the field"
)
NO_ENGINE = (
    "implements version 0.2 of the contract, and would not find the selected engine: ask an administrator to upgrade "
    "the provider, or set engine.type"
)
UNSTATED = "states no version of the contract, so 0.2 counts"
WRONG = "states 'v0.3', which is no version of the contract, so 0.2 counts"


@pytest.mark.parametrize(
    ("spec", "version", "expected"),
    [
        (NEWER, "0.2", IGNORED),
        (NEWER, CURRENT, ""),
        (NEWER, "1.0", ""),
        (NEWER, "0.10", ""),
        (NEWER, "", IGNORED.replace("implements version 0.2 of the contract", UNSTATED)),
        (NEWER, "v0.3", IGNORED.replace("implements version 0.2 of the contract", WRONG)),
        ({**SPEC, "engine": {**SPEC["engine"], "extraArgs": []}}, "0.2", ""),
        ({"engine": "no map"}, "0.2", NO_ENGINE),
        ({**SPEC, "engine": {}}, "0.2", NO_ENGINE),
        ({**SPEC, "engine": {}}, CURRENT, ""),
        (SPEC, "0.2", ""),
    ],
)
def test_newer_fields_are_named(spec: dict[str, Any], version: str, expected: str) -> None:
    assert ignored_fields(spec, version) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"), [({"kubefoundry.ai/contract": "0.3"}, "0.3"), ({}, ""), (None, "")]
)
def test_version_is_read_from_registration(annotations: dict[str, str] | None, expected: str) -> None:
    assert stated({"metadata": {"name": "acme", "annotations": annotations}}) == expected


def test_provider_with_another_text_than_a_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"contract '0\.3\.0' is no version"):
        replace(PROVIDER, contract="0.3.0")


def test_runtime_refuses_newer_field_for_earlier_contract() -> None:
    earlier, current = replace(PROVIDER, contract="0.2"), replace(PROVIDER, contract=CURRENT)

    assert incompatibilities(earlier, deployment(NEWER), None) == [f"Things {IGNORED}"]
    assert incompatibilities(current, deployment(NEWER), None) == []
