"""A provider with new defaults writes only the user's changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import plan
from support.plans import V1, changed, deployment, image, planned, provider

NEWER = provider("default:2", flag=" --new")


def test_newer_provider_alone_writes_nothing() -> None:
    todo = planned(deployment(), planned(deployment()), NEWER)

    assert (todo.changed, todo.recreate, todo.drifted) == ([], None, ())


def test_scaling_through_a_newer_provider_changes_the_scale_only() -> None:
    before = planned(deployment())

    todo = planned(deployment({"scaling": {"replicas": 3}}), before, NEWER)

    assert todo.main["spec"] == {**before.main["spec"], "serve": 3}


@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        pytest.param({"engine": {"type": "vllm", "contextLength": 8}}, {}, "default:1", id="a field"),
        pytest.param({"image": "mine:3"}, {}, "mine:3", id="an image"),
        pytest.param({"image": "default:2"}, {}, "default:2", id="the newer default by name"),
        pytest.param({"image": "default:1"}, {}, "default:1", id="the pinned default by name"),
        pytest.param({"model": {"id": "org/other"}}, {}, "default:2", id="identity"),
        pytest.param({}, {"annotations": {"kubefoundry.ai/refresh": "1"}}, "default:2", id="refresh"),
    ],
)
def test_image_after_an_edit_through_a_newer_provider(
    spec: dict[str, Any], metadata: dict[str, Any], expected: str
) -> None:
    todo = planned(deployment(spec, **metadata), planned(deployment()), NEWER)

    assert image(todo) == expected
    assert todo.main["spec"]["runtime"].startswith(f"for {expected}")


def test_removed_image_is_replaced_by_the_current_default() -> None:
    todo = planned(deployment(), planned(deployment({"image": "mine:3"})), NEWER)

    assert image(todo) == "default:2"


def test_refresh_without_effect_is_over_once_written() -> None:
    refreshed = deployment(annotations={"kubefoundry.ai/refresh": "1"})
    live = planned(refreshed, planned(deployment()))

    todo = planned(refreshed, live, NEWER)

    assert todo.changed == []


def test_recreated_object_starts_from_the_applied_record() -> None:
    record = manifest.applied(planned(deployment()).main)
    desired = pinned(deployment({"engine": {"type": "vllm", "contextLength": 8}}), record)

    todo = plan(NEWER, desired, V1, NEWER.render(desired, V1), None, {}, record)

    assert (image(todo), todo.main["spec"]["context"]) == ("default:1", 8)
    assert changed(todo) == ["ConfigMap", "Engine"]


def test_object_without_readable_record_is_written_whole() -> None:
    live = planned(deployment())
    live.main["metadata"]["annotations"]["kubefoundry.ai/applied"] = "!"

    todo = planned(deployment(), live, NEWER)

    assert changed(todo) == ["Engine"]
    assert (image(todo), todo.recreate) == ("default:2", None)


def test_unrenderable_old_spec_is_replaced_as_a_whole() -> None:
    picky = replace(
        NEWER, supports=lambda asked, schema: () if asked.spec.engine.context_length else ("too short",)
    )

    todo = planned(deployment({"engine": {"type": "vllm", "contextLength": 8}}), planned(deployment()), picky)

    assert todo.main["spec"]["runtime"] == "for default:1 --new"
