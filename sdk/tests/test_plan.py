"""From a render and what lives upstream to what is to be written, deleted or left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.provider import manifest
from kubefoundry_sdk.provider.contract import (
    Capabilities,
    Deployment,
    Observation,
    Provider,
    Rendered,
    Schema,
    UpstreamKind,
)
from kubefoundry_sdk.provider.plan import Plan, pinned, plan

V1 = Schema("example.com/v1")
V2 = Schema("example.com/v2")
SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def provider(default_image: str = "default:1", flag: str = "") -> Provider:
    """A provider of two parts, one of them a helper. Its context length cannot change in place."""

    def render(deployment: Deployment, schema: Schema) -> Rendered:
        spec = deployment.spec
        image = spec.image or default_image
        main = {
            "apiVersion": schema.api_version,
            "kind": "Engine",
            "metadata": {"name": deployment.name},
            "spec": {
                "groups": [{"group": "gpu", "image": image, "replicas": spec.scaling.replicas}],
                "context": spec.engine.context_length or 0,
                "runtime": f"for {image}{flag}",
                "serve": spec.scaling.replicas,
            },
        }
        helper = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{deployment.name}-config"},
            "data": {"served": spec.served_name or ""},
        }
        return Rendered(main, (helper,), image=image)

    def recreate(old: Rendered, new: Rendered) -> str | None:
        return "context" if old.main["spec"]["context"] != new.main["spec"]["context"] else None

    def observe(deployment: Deployment, live: Object) -> Observation:
        raise AssertionError("a plan observes nothing")

    return Provider(
        name="example",
        title="Example",
        version="0.1.0",
        documentation="",
        capabilities=Capabilities(("vllm", "sglang"), ("aggregated",), False, True),
        upstream=UpstreamKind("example.com", "engines", "Engine"),
        probe=lambda crd: V1,
        supports=lambda deployment, schema: (),
        render=render,
        observe=observe,
        recreate=recreate,
        yielded=("spec.groups[*].replicas",),
        helper_kinds=("ConfigMap",),
    )


def deployment(spec: dict[str, Any] | None = None, **metadata: Any) -> Deployment:
    raw = {**SPEC, **(spec or {})}
    return Deployment("m", "n", "uid", 1, ModelDeploymentSpec.model_validate(raw), raw_spec=raw, **metadata)


def planned(
    wanted: Deployment, live: Plan | None = None, shim: Provider | None = None, schema: Schema = V1
) -> Plan:
    """The plan for `wanted`, where what an earlier plan applied lives upstream."""
    shim = shim or provider()
    main = live.main if live else None
    helpers = {obj["metadata"]["name"]: obj for obj in live.helpers} if live else {}
    record = manifest.applied(main) if main else None
    pinned_to_it = pinned(wanted, record)
    rendered = shim.render(pinned_to_it, schema)
    return plan(shim, pinned_to_it, schema, rendered, main, helpers)


def changed(todo: Plan) -> list[str]:
    return [obj["kind"] for obj in todo.changed]


def image(todo: Plan) -> str:
    return str(todo.main["spec"]["groups"][0]["image"])


def test_what_is_not_there_is_created_helpers_first() -> None:
    todo = planned(deployment())

    assert changed(todo) == ["ConfigMap", "Engine"]
    assert todo.recreate is None


def test_nothing_is_written_where_nothing_has_changed() -> None:
    todo = planned(deployment(), planned(deployment()))

    assert (todo.changed, todo.drifted, todo.recreate) == ([], (), None)


@pytest.mark.parametrize(
    ("spec", "metadata", "kinds", "recreate"),
    [
        pytest.param({"scaling": {"replicas": 3}}, {}, ["Engine"], None, id="in place"),
        pytest.param(
            {"model": {"id": "org/m", "servedName": "x"}}, {}, ["ConfigMap"], None, id="helper only"
        ),
        pytest.param({"env": [{"name": "A", "value": "1"}]}, {}, [], None, id="not rendered"),
        pytest.param({}, {"labels": {"kubefoundry.ai/team": "a"}}, ["ConfigMap", "Engine"], None, id="label"),
        pytest.param(
            {"engine": {"type": "vllm", "contextLength": 8}},
            {},
            ["Engine"],
            "context",
            id="the provider's own",
        ),
        pytest.param(
            {"model": {"id": "org/other"}}, {}, ["ConfigMap", "Engine"], "model.id changed", id="identity"
        ),
        pytest.param(
            {"engine": {"type": "sglang"}},
            {},
            ["Engine"],
            "engine.type changed",
            id="identity, rendered alike",
        ),
        pytest.param({}, {"annotations": {"kubefoundry.ai/refresh": "1"}}, ["Engine"], None, id="refresh"),
    ],
)
def test_what_a_change_needs(
    spec: dict[str, Any], metadata: dict[str, Any], kinds: list[str], recreate: str | None
) -> None:
    todo = planned(deployment(spec, **metadata), planned(deployment()))

    assert (changed(todo), todo.recreate) == (kinds, recreate)


NEWER = provider("default:2", flag=" --new")


def test_a_newer_shim_alone_writes_nothing() -> None:
    todo = planned(deployment(), planned(deployment()), NEWER)

    assert (todo.changed, todo.recreate, todo.drifted) == ([], None, ())


def test_scaling_through_a_newer_shim_changes_the_scale_only() -> None:
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
def test_what_a_change_through_a_newer_shim_does_to_the_image(
    spec: dict[str, Any], metadata: dict[str, Any], expected: str
) -> None:
    todo = planned(deployment(spec, **metadata), planned(deployment()), NEWER)

    assert image(todo) == expected
    assert todo.main["spec"]["runtime"].startswith(f"for {expected}")


def test_an_image_taken_back_gives_the_default_of_today() -> None:
    todo = planned(deployment(), planned(deployment({"image": "mine:3"})), NEWER)

    assert image(todo) == "default:2"


def test_a_refresh_that_changes_nothing_is_over_once_written() -> None:
    refreshed = deployment(annotations={"kubefoundry.ai/refresh": "1"})
    live = planned(refreshed, planned(deployment()))

    todo = planned(refreshed, live, NEWER)

    assert todo.changed == []


def test_an_object_made_anew_starts_from_what_was_applied() -> None:
    record = manifest.applied(planned(deployment()).main)
    wanted = pinned(deployment({"engine": {"type": "vllm", "contextLength": 8}}), record)

    todo = plan(NEWER, wanted, V1, NEWER.render(wanted, V1), None, {}, record)

    assert (image(todo), todo.main["spec"]["context"]) == ("default:1", 8)
    assert changed(todo) == ["ConfigMap", "Engine"]


def test_another_version_of_the_crd_alone_writes_nothing() -> None:
    todo = planned(deployment(), planned(deployment()), schema=V2)

    assert (todo.changed, todo.drifted) == ([], ())


def test_a_change_after_another_version_of_the_crd_is_written_in_that_version() -> None:
    todo = planned(deployment({"scaling": {"replicas": 3}}), planned(deployment()), schema=V2)

    assert changed(todo) == ["Engine"]
    assert (todo.main["apiVersion"], todo.main["spec"]["serve"]) == ("example.com/v2", 3)


def test_what_others_own_is_neither_drift_nor_overwritten() -> None:
    live = planned(deployment())
    live.main["spec"]["groups"][0]["replicas"] = 7

    still = planned(deployment(), live)
    scaled = planned(deployment({"scaling": {"replicas": 3}}), live)

    assert still.drifted == ()
    assert scaled.main["spec"]["groups"][0]["replicas"] == 7
    assert scaled.main["spec"]["serve"] == 3


def test_what_others_change_of_ours_is_drift() -> None:
    live = planned(deployment())
    live.main["spec"]["context"] = 5
    del live.main["metadata"]["labels"]["kubefoundry.ai/managed-by"]

    todo = planned(deployment(), live)

    assert todo.drifted == ("metadata.labels.kubefoundry.ai/managed-by", "spec.context")
    assert todo.changed == []


def test_a_helper_that_someone_changed_is_written_again() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment(), live)

    assert (changed(todo), todo.recreate) == (["ConfigMap"], None)


def test_what_is_written_only_because_someone_changed_it_is_a_correction() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment(), live)
    [(obj, paths)] = todo.corrections

    assert (obj["kind"], paths) == ("ConfigMap", ("data.served",))


def test_a_record_that_someone_removed_is_corrected() -> None:
    live = planned(deployment())
    del live.main["metadata"]["annotations"]["kubefoundry.ai/applied"]

    [(obj, paths)] = planned(deployment(), live).corrections

    assert (obj["kind"], paths) == ("Engine", ("metadata.annotations.kubefoundry.ai/applied",))


def test_a_change_of_the_users_is_no_correction_whatever_someone_changed_meanwhile() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment({"scaling": {"replicas": 3}}), live)

    assert (changed(todo), todo.corrections) == (["ConfigMap", "Engine"], [])


def test_a_helper_follows_a_change_and_its_taking_back() -> None:
    named = deployment({"model": {"id": "org/m", "servedName": "x"}})

    live = planned(deployment())
    # Only the helper is written.
    there = replace(live, helpers=planned(named, live).helpers)
    back = planned(deployment(), there)

    assert changed(back) == ["ConfigMap"]
    assert back.helpers[0]["data"] == planned(deployment()).helpers[0]["data"]


def test_an_object_without_a_readable_record_is_written_whole() -> None:
    live = planned(deployment())
    live.main["metadata"]["annotations"]["kubefoundry.ai/applied"] = "!"

    todo = planned(deployment(), live, NEWER)

    assert changed(todo) == ["Engine"]
    assert (image(todo), todo.recreate) == ("default:2", None)


def test_the_record_survives_its_packing() -> None:
    record = manifest.Record({"metadata": {"name": "m"}, "spec": {"a": [1]}}, {"image": "x"}, "r", None)

    live = {"metadata": {"annotations": {"kubefoundry.ai/applied": manifest.pack(record)}}}

    assert manifest.applied(live) == record
    assert manifest.applied({"metadata": {}}) is None


def test_a_shim_that_cannot_render_the_old_spec_replaces_the_whole() -> None:
    picky = replace(
        NEWER, supports=lambda asked, schema: () if asked.spec.engine.context_length else ("too short",)
    )

    todo = planned(deployment({"engine": {"type": "vllm", "contextLength": 8}}), planned(deployment()), picky)

    assert todo.main["spec"]["runtime"] == "for default:1 --new"
