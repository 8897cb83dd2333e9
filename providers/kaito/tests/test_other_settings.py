"""A provider with other settings than the one that applied: nothing that serves changes, and an edit gives a
Workspace of one kind, by a preset or by a pod template."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubefoundry_kaito.provider import provider
from kubefoundry_kaito.settings import Settings
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import Plan, plan
from kubefoundry_sdk.testing.generated import deployment, specs

SCHEMA = Schema("kaito.sh/v1beta1")
SETTINGS = [
    Settings(),
    Settings(provisioning="auto", gpu_instance_type="g", cpu_instance_type="c"),
    Settings(images={"vllm": "registry.example/vllm:1", "llamacpp": "registry.example/llamacpp:1"}),
    Settings(images={"vllm": "registry.example/vllm:2"}),
]
MODELS = st.sampled_from(["microsoft/phi-4", "Qwen/Qwen2.5-Coder-7B-Instruct"]).map(lambda name: {"id": name})
IMAGES = st.sampled_from([None, "registry.example/mine:1"])


@pytest.mark.slow
@given(
    specs(engines=["vllm"], modes=["aggregated"], model=MODELS, image=IMAGES),
    st.lists(st.sampled_from(SETTINGS), min_size=2, max_size=4),
    st.sampled_from([1024, 4096]),
)
def test_other_settings(spec: dict[str, Any], settings: list[Settings], length: int) -> None:
    edited = {**spec, "engine": {**spec["engine"], "contextLength": length}}
    first, *others = (provider(setting) for setting in settings)
    model = _deployment(spec)
    assume(_can(first, model))
    before = _planned(first, model, None)
    for other in others:
        if not _can(other, model):
            continue
        todo = _planned(other, model, before)

        assert (todo.changed, todo.recreate, todo.drifted) == ([], None, ())
        assert {obj["metadata"]["name"] for obj in (*todo.helpers, *todo.retained)} == _named(todo)

    last, desired = others[-1], _deployment(edited)
    assume(_can(last, desired))
    todo = _planned(last, desired, before)

    assert len({"preset", "template"} & set(todo.main["inference"])) == 1
    assert {obj["metadata"]["name"] for obj in todo.helpers} == _named(todo)


def _deployment(spec: dict[str, Any]) -> Deployment:
    return replace(deployment(spec), raw_spec=spec)


def _can(subject: Provider, model: Deployment) -> bool:
    return not results.supports(subject, model, SCHEMA)


def _planned(subject: Provider, model: Deployment, live: Plan | None) -> Plan:
    record = manifest.applied(live.main) if live else None
    served = pinned(model, record)
    rendered = subject.render(served, SCHEMA)
    main, helpers = (live.main, live.helpers) if live else (None, [])
    return plan(subject, served, SCHEMA, rendered, main, helpers, record)


def _named(todo: Plan) -> set[str]:
    """The ConfigMaps that the Workspace needs."""
    return {name for name in [todo.main["inference"].get("config")] if name}
