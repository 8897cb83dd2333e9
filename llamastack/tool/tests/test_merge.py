"""Tests the merge of providers into a run configuration: values in, values out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from llamastack_providers import merge, yaml_file
from llamastack_providers.errors import Code, Failure
from llamastack_providers.merge import Addition
from llamastack_providers.request import ModelEndpoint

ENTRY = {"provider_id": "echo", "provider_type": "remote::echo", "module": "acme_echo", "config": {"a": 1}}
ECHO = Addition("inference", ENTRY, "external", "image echo:1")
OTHER = {"provider_id": "other", "provider_type": "remote::other", "config": {}}


def with_id(provider_id: str) -> dict[str, Any]:
    return {"provider_id": provider_id, "provider_type": "remote::base"}


@pytest.mark.accept("FR-017")
@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({}, {"providers": {"inference": [ENTRY]}}),
        ({"providers": None}, {"providers": {"inference": [ENTRY]}}),
        ({"providers": {}}, {"providers": {"inference": [ENTRY]}}),
        ({"providers": {"inference": None}}, {"providers": {"inference": [ENTRY]}}),
        ({"providers": {"inference": []}}, {"providers": {"inference": [ENTRY]}}),
        ({"providers": {"inference": [OTHER]}}, {"providers": {"inference": [OTHER, ENTRY]}}),
        ({"providers": {"safety": [OTHER]}}, {"providers": {"safety": [OTHER], "inference": [ENTRY]}}),
        (
            {"apis": ["safety"], "providers": {}},
            {"apis": ["safety", "inference"], "providers": {"inference": [ENTRY]}},
        ),
        (
            {"apis": ["inference"], "providers": {}},
            {"apis": ["inference"], "providers": {"inference": [ENTRY]}},
        ),
        ({"apis": [], "providers": {}}, {"apis": [], "providers": {"inference": [ENTRY]}}),
        (
            {"zeta": {"x": "${env.X:=1}"}, "providers": {}, "alpha": [None, True]},
            {"zeta": {"x": "${env.X:=1}"}, "providers": {"inference": [ENTRY]}, "alpha": [None, True]},
        ),
    ],
)
def test_merge_adds_provider(base: dict[str, Any], expected: dict[str, Any]) -> None:
    untouched = copy.deepcopy(base)

    config, warnings = merge.merged(base, [ECHO])

    assert (config, warnings) == (expected, [])
    assert list(config) == list(expected)
    assert base == untouched


@pytest.mark.accept("FR-017")
def test_merge_fills_empty_base() -> None:
    config, _ = merge.merged(None, [ECHO])

    assert config["version"] == 2
    assert config["image_name"] and config["distro_name"]


@pytest.mark.accept("FR-018", "FR-019", "US2-1", "US2-2")
@pytest.mark.parametrize(
    "written",
    ["echo", "${env.ECHO_URL:+echo}", "${env.ECHO_ID:=echo}"],
    ids=["literal", "conditional", "default"],
)
def test_merge_replaces_provider_of_same_id(written: str) -> None:
    base = {"providers": {"inference": [with_id(written), OTHER]}}

    config, warnings = merge.merged(base, [ECHO])

    assert config["providers"]["inference"] == [OTHER, ENTRY]
    [warning] = warnings
    assert warning.startswith(
        "External provider 'echo' overrides base provider in API 'inference'\n"
        "  Base type: remote::base\n"
        "  External type: remote::echo\n"
    )
    assert "image echo:1" in warning


@pytest.mark.parametrize("written", ["echo2", "${env.echo:=other}", "${env.ECHO}", None, 3])
def test_merge_keeps_other_ids(written: Any) -> None:
    config, warnings = merge.merged({"providers": {"inference": [with_id(written)]}}, [ECHO])

    assert len(config["providers"]["inference"]) == 2
    assert warnings == []


def test_merge_warns_when_id_is_in_another_api() -> None:
    config, [warning] = merge.merged({"providers": {"safety": [with_id("echo")]}}, [ECHO])

    assert [len(entries) for entries in config["providers"].values()] == [1, 1]
    assert "safety" in warning and "echo" in warning


@pytest.mark.accept("FR-017")
def test_merge_orders_base_models_externals() -> None:
    model = merge.model_addition(ModelEndpoint("llama", "KUBEFOUNDRY_MD_LLAMA_URL", {"max_tokens": 5}))
    second = Addition("inference", {**ENTRY, "provider_id": "second"}, "external", "image second:1")

    config, _ = merge.merged({"providers": {"inference": [OTHER]}}, [model, ECHO, second])

    assert [entry["provider_id"] for entry in config["providers"]["inference"]] == [
        "other",
        "llama",
        "echo",
        "second",
    ]


def test_merge_adds_model_deployment_as_vllm() -> None:
    addition = merge.model_addition(ModelEndpoint("llama", "KUBEFOUNDRY_MD_LLAMA_URL", {"max_tokens": 5}))

    assert (addition.section, addition.entry) == (
        "inference",
        {
            "provider_id": "llama",
            "provider_type": "remote::vllm",
            "config": {
                "refresh_models": True,
                "max_tokens": 5,
                "base_url": "${env.KUBEFOUNDRY_MD_LLAMA_URL}",
            },
        },
    )


def test_merge_prefers_external_over_model_deployment() -> None:
    model = merge.model_addition(ModelEndpoint("echo", "KUBEFOUNDRY_MD_ECHO_URL", {}))

    config, [warning] = merge.merged({}, [model, ECHO])

    assert config["providers"]["inference"] == [ENTRY]
    assert "remote::vllm" in warning


@pytest.mark.parametrize(
    "base",
    [
        "text",
        [1],
        {"providers": []},
        {"providers": {"inference": {}}},
        {"providers": {"inference": ["x"]}},
        {"apis": "x"},
    ],
    ids=str,
)
def test_merge_refuses_invalid_base(base: Any) -> None:
    with pytest.raises(Failure) as refused:
        merge.merged(base, [ECHO])

    assert refused.value.code is Code.InvalidBaseConfig


def test_extra_providers_has_externals() -> None:
    safety = Addition("safety", {**ENTRY, "provider_id": "guard"}, "external", "image guard:1")

    assert merge.extra_providers([ECHO, safety]) == {
        "apiVersion": "llamastack.io/v1alpha1",
        "kind": "ExternalProviders",
        "providers": {"inference": [ENTRY], "safety": [safety.entry]},
    }


TEXTS = ["yes", "NO", "on", "null", "~", "", " ", "=", "<<", "#", "- x", "a: b", "'\"", "a\nb", "\\n"]
TEXTS += ["1e3", "012", "0x1f", "1_000", "12:30:45", ".inf", "-.5", "2024-01-01"]
TEXTS += ["$(HOME)", "$$", "${env.X}", "${env.X:=a b}", "\u00fc\u2028\x85", "\U0001f600"]


@pytest.mark.accept("FR-022")
@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_merge_keeps_text_as_written(text: str) -> None:
    assert yaml.safe_load(yaml_file.dump({"key": text, text: [text]})) == {"key": text, text: [text]}


STRINGS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.integers(min_value=2**63, max_value=2**200) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@pytest.mark.accept("FR-022")
@given(VALUES)
def test_merge_keeps_values_and_types(value: Any) -> None:
    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(inner) for key, inner in value.items()}
        return [typed(inner) for inner in value] if isinstance(value, list) else (type(value), value)

    assert typed(yaml.safe_load(yaml_file.dump(value))) == typed(value)
