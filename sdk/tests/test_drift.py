"""What counts as drift, and how often it is put back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._provider.write.drift import differences
from kubefoundry_sdk._runtime.repairs import LIMIT, WINDOW, Repairs

OWNER = {"uid": "u", "name": "m"}
APPLIED: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Engine",
    "metadata": {"name": "m", "labels": {"a": "1"}, "annotations": {"b": "2"}, "ownerReferences": [OWNER]},
    "spec": {
        "replicas": 1,
        "args": ["--a", "1"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "tolerations": [{"key": "x"}],
        "groups": [{"group": "gpu", "replicas": 1}],
        "nothing": {},
    },
}


def live(**spec: Any) -> dict[str, Any]:
    return {**APPLIED, "spec": {**APPLIED["spec"], **spec}}


def meta(**changes: Any) -> dict[str, Any]:
    return {**APPLIED, "metadata": {**APPLIED["metadata"], **changes}}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(APPLIED, [], id="as applied"),
        pytest.param(live(replicas=2), ["spec.replicas"], id="a value"),
        pytest.param(live(replicas=True), ["spec.replicas"], id="true is not 1"),
        pytest.param(live(replicas=1.0), [], id="1.0 is 1"),
        pytest.param(live(added=True, nothing=None), [], id="what the upstream adds or drops as empty"),
        pytest.param({**APPLIED, "apiVersion": "example.com/v2", "status": {}}, [], id="version and status"),
        pytest.param(live(args=["--a", "1", "--b"]), ["spec.args"], id="an argument more"),
        pytest.param(live(args=["--a", "2"]), ["spec.args[1]"], id="another argument"),
        pytest.param(
            live(env=[{"name": "C"}, {"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
            [],
            id="named items in another order, one more",
        ),
        pytest.param(live(env=[{"name": "A", "value": "1"}]), ["spec.env[B]"], id="a named item less"),
        pytest.param(
            live(env=[{"name": "A", "value": "9"}, {"name": "B", "value": "2"}]), ["spec.env[A].value"]
        ),
        pytest.param(live(tolerations=[{"key": "x"}, {"key": "sku"}]), [], id="a toleration more"),
        pytest.param(live(tolerations=[]), ["spec.tolerations"], id="a toleration less"),
        pytest.param(live(groups=[{"group": "gpu", "replicas": 5}]), [], id="a ignored_differences path"),
        pytest.param(
            live(groups=[{"group": "cpu", "replicas": 5}]),
            ["spec.groups[0].group"],
            id="beside a ignored_differences path",
        ),
        pytest.param(meta(labels={}), ["metadata.labels.a"], id="a label less"),
        pytest.param(meta(annotations={"b": "2", "c": "3"}), [], id="an annotation more"),
        pytest.param(meta(ownerReferences=[]), ["metadata.ownerReferences[u]"], id="no owner"),
        pytest.param(meta(ownerReferences=[{"uid": "x", "name": "x"}, OWNER]), [], id="an owner more"),
        pytest.param(meta(finalizers=["x"], generation=9), [], id="finalizer and generation"),
    ],
)
def test_drift_lists_fields_with_other_values(now: dict[str, Any], expected: list[str]) -> None:
    assert differences(APPLIED, now, ("spec.groups[*].replicas",)) == expected


@pytest.mark.parametrize(
    ("stated", "now", "expected"),
    [
        ({"app": "m"}, {"app": "m"}, []),
        ({"app": "m"}, {"app": "m", "x": "y"}, ["spec.selector"]),
        ({"app": "m"}, {"app": "z"}, ["spec.selector.app"]),
        ({}, {"x": "y"}, []),
        ({"app": "m"}, None, ["spec.selector"]),
        (["what", "a", "record"], {"x": "y"}, ["spec.selector"]),
    ],
)
def test_added_service_selector_key_is_drift(stated: Any, now: Any, expected: list[str]) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {}}

    paths = differences({**service, "spec": {"selector": stated}}, {**service, "spec": {"selector": now}})

    assert paths == expected


JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "uid", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(spec=JSON)
def test_object_never_drifts_from_itself(spec: Any) -> None:
    obj = {"apiVersion": "v1", "kind": "X", "metadata": {}, "spec": spec}

    assert differences(obj, obj) == []


def test_sixth_repair_waits_until_the_first_is_old() -> None:
    corrections = Repairs()
    for moment in range(LIMIT):
        assert corrections.wait(float(moment)) == 0
        corrections.note(float(moment))

    assert corrections.wait(10.0) == WINDOW - 10
    assert corrections.wait(WINDOW) == 0


@pytest.mark.parametrize(
    ("applied", "live", "expected"),
    [
        ("1024Mi", "1Gi", []),
        (34359738368, "32Gi", []),
        ("1024Mi", "2Gi", ["spec.containers[a].resources.limits.memory"]),
        ("1024Mi", "much", ["spec.containers[a].resources.limits.memory"]),
    ],
)
def test_drift_ignores_the_form_of_a_quantity(applied: object, live: object, expected: list[str]) -> None:
    def pod(memory: object) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": "a", "resources": {"limits": {"memory": memory}}}]}}

    assert differences(pod(applied), pod(live)) == expected


def test_text_that_looks_like_a_quantity_is_compared_as_text() -> None:
    def pod(value: str) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": value}]}]}}

    assert differences(pod("1024Mi"), pod("1Gi")) == ["spec.containers[a].env[X].value"]


def owner(uid: str, **roles: bool) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, **roles}


@pytest.mark.parametrize(
    ("live", "paths"),
    [
        pytest.param([owner("ours", controller=True)], [], id="as applied"),
        pytest.param([owner("ours"), owner("other", controller=True)], [], id="another controller"),
        pytest.param(
            [owner("ours", controller=False), owner("other", controller=True)], [], id="role denied"
        ),
        pytest.param([owner("other", controller=True)], ["metadata.ownerReferences[ours]"], id="owner lost"),
        pytest.param(
            [owner("ours"), owner("other")],
            ["metadata.ownerReferences[ours].controller"],
            id="no controller",
        ),
    ],
)
def test_controller_role_is_drift_only_if_it_is_free(live: list[Any], paths: list[str]) -> None:
    applied = {"metadata": {"ownerReferences": [owner("ours", controller=True)]}}

    assert differences(applied, {"metadata": {"ownerReferences": live}}) == paths


JUNK = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3) | st.just("ours"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["uid", "controller", "name"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(JUNK, max_size=4), JUNK, st.booleans())
def test_owners_of_an_odd_record_can_be_compared(owners: list[Any], live: Any, is_swapped: bool) -> None:
    """A tenant can write anything into the record of an object."""
    applied = {"metadata": {"ownerReferences": [*owners, owner("ours", controller=True)]}}
    stored = {"metadata": {"ownerReferences": live}}

    assert differences(applied, applied) == []
    assert isinstance(differences(*((stored, applied) if is_swapped else (applied, stored))), list)
