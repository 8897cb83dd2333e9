"""An answer to "what would have to change" is proven by changing it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from kubefoundry_cli.providers import installed
from kubefoundry_cli.selection import selected
from kubefoundry_cli.upstream import problems
from kubefoundry_cli.what_if import verdicts
from kubefoundry_sdk._api.validation import default, validate
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_sdk.testing.generated import specs
from kubefoundry_selector.candidate import provider
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.refused_specs import GONE, changed

PACKAGES = installed()
REGISTERED = [provider({**registration(one), "status": {"ready": True}}) for one in PACKAGES.values()]


@pytest.mark.slow
@settings(max_examples=20)
@given(specs())
def test_edits_have_that_provider_chosen(spec: dict[str, Any]) -> None:
    obj = _stored(spec)
    chosen = selected(obj, REGISTERED, PACKAGES).provider

    for verdict in verdicts(obj, REGISTERED, PACKAGES, chosen=chosen):
        if not verdict.edits:
            continue
        other = _stored(
            changed(
                obj["spec"],
                **{
                    path.replace(".", "__"): GONE if value is None else value for path, value in verdict.edits
                },
            )
        )
        assert validate(other["spec"]) == []
        if verdict.by_rules:
            assert selected(other, REGISTERED, PACKAGES).provider == verdict.provider


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        pytest.param(GPU, "kuberay", "kuberay: would accept it if named", id="by name only"),
        pytest.param(CPU, "dynamo", "dynamo: cannot be selected by changing one field", id="two fields"),
        pytest.param(
            DISAGGREGATED,
            "kaito",
            "kaito: cannot be selected by changing one field",
            id="another model",
        ),
    ],
)
def test_what_if_names_the_edit_that_selects_a_provider(spec: dict[str, Any], name: str, said: str) -> None:
    obj = _stored(spec)
    chosen = selected(obj, REGISTERED, PACKAGES).provider

    [verdict] = [one for one in verdicts(obj, REGISTERED, PACKAGES, chosen=chosen) if one.provider == name]

    assert verdict.text.startswith(said)


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        pytest.param(GPU, "direct", "direct: would accept it if named", id="as it is"),
        pytest.param(
            {**GPU, "engine": {"type": "llamacpp"}},
            "dynamo",
            "dynamo: would accept it with engine.type=vllm; would refuse it if named: ",
            id="another engine",
        ),
    ],
)
def test_where_a_provider_is_named_rules_select_no_other(spec: dict[str, Any], name: str, said: str) -> None:
    obj = _stored({**spec, "provider": {"name": "kaito"}})

    found = {one.provider: one for one in verdicts(obj, REGISTERED, PACKAGES, chosen="kaito")}

    assert found[name].text.startswith(said)
    assert not any(one.by_rules or "selected with" in one.text for one in found.values())
    edits = {
        path.replace(".", "__"): GONE if value is None else value for path, value in found[name].edits or ()
    }
    assert not problems(PACKAGES[name], _stored(changed(obj["spec"], **edits)), None)


def _stored(spec: dict[str, Any]) -> dict[str, Any]:
    made = model_deployment("m", "models", spec)
    return {**made, "metadata": {**made["metadata"], "uid": "u", "generation": 1}, "spec": default(spec)}
