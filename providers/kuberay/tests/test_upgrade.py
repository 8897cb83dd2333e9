"""An edit through a newer provider changes what the user changed inside `serveConfigV2`, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from support.plans import deployment, planned

V1 = Schema("ray.io/v1")
TODAY = provider(Settings())


def older() -> Provider:
    """A provider whose Serve applications have other settings than today's."""

    def render(model: Deployment, schema: Schema) -> Rendered:
        rendered = TODAY.render(model, schema)
        content = yaml.safe_load(rendered.main["spec"]["serveConfigV2"])
        (application,) = content["applications"]
        application["runtime_env"] = {"env_vars": {"OLD": "1"}}
        application["args"]["llm_configs"][0]["engine_kwargs"]["seed"] = 7
        spec = {**rendered.main["spec"], "serveConfigV2": yaml.safe_dump(content)}
        return replace(rendered, main={**rendered.main, "spec": spec})

    return replace(TODAY, render=render)


def application(todo: Any) -> dict[str, Any]:
    (serve_application,) = yaml.safe_load(todo.main["spec"]["serveConfigV2"])["applications"]
    return dict(serve_application)


@pytest.mark.parametrize(
    ("change", "expect"),
    [
        pytest.param({"scaling": {"replicas": 3}}, ("deployments", 0, "num_replicas", 3), id="a scale"),
        pytest.param(
            {"engine": {"type": "vllm", "contextLength": 4096}},
            ("args", "llm_configs", 0, "engine_kwargs", "max_model_len", 4096),
            id="an edit",
        ),
    ],
)
def test_only_what_the_user_changed(change: dict[str, Any], expect: tuple[Any, ...]) -> None:
    before = planned(deployment(), subject=older(), schema=V1)
    expected = application(before)
    *path, last, value = expect
    part: Any = expected
    for step in path:
        part = part[step]
    part[last] = value

    todo = planned(deployment(change), before, TODAY, V1)

    assert application(todo) == expected
    assert todo.changed == [todo.main]
