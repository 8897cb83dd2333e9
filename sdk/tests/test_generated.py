"""The generated specs are valid, and reach every field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from kubefoundry_conformance.fields import FIELDS
from kubefoundry_sdk.testing.generated import NEEDS_GPU, deployment, specs


@pytest.mark.slow
@settings(max_examples=200)
@given(specs())
def test_generated_spec_breaks_no_rule(spec: dict[str, Any]) -> None:
    typed = deployment(spec).spec

    assert typed.engine.type is not None
    assert typed.image if typed.model.source == "custom" else typed.model.id
    if typed.serving.mode == "disaggregated":
        assert typed.scaling.replicas == 1 and typed.resources.gpu is None
        for role in (typed.scaling.prefill, typed.scaling.decode):
            assert role and role.gpu and role.gpu.count > 0
    elif typed.engine.type in NEEDS_GPU:
        assert typed.gpu_count > 0


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("field", [field for field in FIELDS if not field.startswith("provider.")])
def test_field_is_reached(field: str) -> None:
    # One search for each field: what a fixed number of specs reaches depends on the modules that are loaded.
    only_generate = settings(max_examples=2000, database=None, phases=[Phase.generate])

    spec = find(specs(), lambda drawn: _states(drawn, field), settings=only_generate)

    assert _states(spec, field)


def _states(spec: Any, field: str) -> bool:
    for step in field.split("."):
        if not isinstance(spec, dict) or step not in spec:
            return False
        spec = spec[step]
    return True


@given(specs(engines=["vllm"], modes=["aggregated"], image=None, provider=st.just({"name": "p"})))
def test_fixed_fields_stay(spec: dict[str, Any]) -> None:
    assert "image" not in spec
    assert spec["provider"] == {"name": "p"}
    assert spec["model"].get("source") != "custom"
