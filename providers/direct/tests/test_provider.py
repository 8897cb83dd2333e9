"""What the provider registers: the last choice, and its flags."""

from __future__ import annotations

from argparse import Namespace

import pytest

from kubefoundry_direct.provider import build, provider
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk._provider.registration import registration


def test_provider_rules_have_negative_priority() -> None:
    rules = registration(provider(Settings()))["spec"]["selectionRules"]

    assert [rule["priority"] < 0 and bool(rule["reason"]) for rule in rules] == [True]


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="--default-image vlm=…"):
        build(Namespace(default_images={"vlm": "x:1"}, mirror=""))
