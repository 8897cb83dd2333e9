"""What a provider writes that serves the same spec in another way than the one that applied it: nothing, until the
user changes something.

The example serves a model by a preset of the upstream's, with a ConfigMap beside it, or by an image that its
administrator has set, as the KAITO provider does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import Plan, plan
from support.plans import V1, deployment, planned, provider

LONGER = {"engine": {"type": "vllm", "contextLength": 8}}


def serving(default_image: str | None = None, *, by_content: bool = True) -> Provider:
    """By a preset, or where an image is set by that one."""

    def render(asked: Deployment, schema: Schema) -> Rendered:
        spec = asked.spec
        main: dict[str, Any] = {
            "apiVersion": schema.api_version,
            "kind": "Engine",
            "metadata": {"name": asked.name},
        }
        length = str(spec.engine.context_length or 0)
        if image := spec.image or default_image:
            main["spec"] = {"template": {"image": image, "length": length}}
            return Rendered(main, image=image)
        main["metadata"]["annotations"] = {"example.com/runtime": "vllm"}
        main["spec"] = {"preset": "m", "config": f"{asked.name}-config"}
        helper = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{asked.name}-config"},
            "data": {"length": length},
        }
        return Rendered(main, (helper,))

    return replace(
        provider(),
        render=render,
        recreate=lambda old, new: None if old.main["spec"] == new.main["spec"] else "spec",
        named_by_content=("spec.config",) if by_content else (),
    )


def kept(todo: Plan, live: Plan) -> list[str]:
    """Names of the helpers of `live` that stay after `todo`."""
    stays = {obj["metadata"]["name"] for obj in (*todo.helpers, *todo.retained)}
    return [name for obj in live.helpers if (name := obj["metadata"]["name"]) in stays]


@pytest.mark.parametrize("by_content", [True, False])
def test_new_default_image_leaves_serving_objects_alone(by_content: bool) -> None:
    before = planned(deployment(), subject=serving(by_content=by_content))

    todo = planned(deployment(), before, serving("default:1", by_content=by_content))

    assert (todo.changed, todo.recreate, todo.drifted) == ([], None, ())
    assert kept(todo, before) == [before.main["spec"]["config"]]


def test_removed_default_image_changes_nothing() -> None:
    before = planned(deployment(), subject=serving("default:1"))

    todo = planned(deployment(), before, serving())

    assert (todo.changed, todo.recreate, todo.helpers) == ([], None, [])


@pytest.mark.parametrize("by_content", [True, False])
def test_edit_after_new_settings_gives_no_mixture(by_content: bool) -> None:
    before = planned(deployment(), subject=serving(by_content=by_content))

    todo = planned(deployment(LONGER), before, serving("default:1", by_content=by_content))

    assert todo.main["spec"] == {"template": {"image": "default:1", "length": "8"}}
    assert "example.com/runtime" not in todo.main["metadata"]["annotations"]
    assert (todo.recreate, kept(todo, before)) == ("spec", [])


def test_edit_without_upstream_effect_writes_nothing() -> None:
    before = planned(deployment(), subject=serving())

    todo = planned(deployment({"provider": {"name": "example"}}), before, serving("default:1"))

    assert (todo.changed, todo.recreate) == ([], None)
    assert kept(todo, before) == [before.main["spec"]["config"]]


def test_image_of_the_user_replaces_the_preset() -> None:
    before = planned(deployment(), subject=serving())

    todo = planned(deployment({"image": "mine:1"}), before, serving("default:1"))

    assert todo.main["spec"] == {"template": {"image": "mine:1", "length": "0"}}


def test_recreated_object_keeps_its_named_helper() -> None:
    before = planned(deployment(), subject=serving())
    record = manifest.applied(before.main)
    other = serving("default:1")
    desired = pinned(deployment(), record)

    todo = plan(other, desired, V1, other.render(desired, V1), None, before.helpers, record)

    assert todo.main["spec"] == before.main["spec"]
    assert kept(todo, before) == [before.main["spec"]["config"]]


def test_what_is_recreated_never_names_a_helper_that_is_gone() -> None:
    before = planned(deployment(), subject=serving())
    record = manifest.applied(before.main)
    other = serving("default:1")
    desired = pinned(deployment(), record)

    todo = plan(other, desired, V1, other.render(desired, V1), None, [], record)

    assert todo.main["spec"] == {"template": {"image": "default:1", "length": "0"}}


def test_replaced_helper_content_is_not_kept() -> None:
    first = planned(deployment(), subject=serving())
    second = planned(deployment(LONGER), first, serving())
    both = replace(second, helpers=[*second.helpers, *first.helpers])

    for subject in (serving(), serving("default:1")):
        todo = planned(deployment(LONGER), both, subject)

        assert kept(todo, first) == []
        assert kept(todo, second) == [second.main["spec"]["config"]]


def test_refresh_switches_to_current_settings() -> None:
    before = planned(deployment(), subject=serving())
    refreshed = deployment(annotations={"kubefoundry.ai/refresh": "1"})

    todo = planned(refreshed, before, serving("default:1"))

    assert todo.main["spec"] == {"template": {"image": "default:1", "length": "0"}}
    assert kept(todo, before) == []


def test_upgrade_adds_no_labels_or_annotations() -> None:
    def newer(asked: Deployment, schema: Schema) -> Rendered:
        rendered = serving().render(asked, schema)
        meta = {
            **rendered.main["metadata"],
            "annotations": {"example.com/other": "new"},
            "labels": {"a": "b", names.MODEL_SOURCE_LABEL: "huggingface"},
        }
        return replace(rendered, main={**rendered.main, "metadata": meta})

    before = planned(deployment(), subject=serving())

    todo = planned(deployment(), before, replace(serving(), render=newer))

    assert (todo.changed, todo.recreate) == ([], None)
