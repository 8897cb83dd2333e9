"""How far a record that somebody may have written is believed."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._provider.write import manifest, record_trust
from kubefoundry_sdk._provider.write.manifest import Record


def record(spec: Any, image: str | None = None) -> Record:
    return Record({"apiVersion": "v1", "kind": "E", "metadata": {}, "spec": spec}, {}, "", image)


def believed(applied: Any, live: Any, render: Any) -> Any:
    return record_trust.trusted(record(applied), {"spec": live}, {"spec": render}).manifest["spec"]


@pytest.mark.parametrize(
    ("applied", "live", "render", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {"a": 9}, {"a": 1}, id="as it is"),
        pytest.param({"a": 1, "hostPID": True}, {"a": 1}, {"a": 1}, {"a": 1}, id="put into the record"),
        pytest.param(
            {"a": {"image": "evil"}},
            {"a": {"image": "i"}},
            {"a": {"image": "i"}},
            {"a": {"image": "i"}},
            id="changed",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": "/"}, {"name": "own"}]},
            {"volumes": [{"name": "own"}]},
            {"volumes": [{"name": "own"}]},
            {"volumes": [{"name": "own"}]},
            id="an item of a list by name",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "evil"}, {"name": "kept", "image": "i"}]},
            {"containers": [{"name": "c", "image": "i"}, {"name": "kept", "image": "i"}]},
            {"containers": [{"name": "c", "image": "i"}]},
            {"containers": [{"name": "c", "image": "i"}, {"name": "kept", "image": "i"}]},
            id="a changed item beside one that is live",
        ),
        pytest.param({"l": ["a", "--evil"]}, {"l": ["a"]}, {"l": ["a"]}, {"l": ["a"]}, id="a plain list"),
        pytest.param({"l": ["a", "--evil"]}, {"l": ["a"]}, {}, {}, id="a plain list that is not rendered"),
        pytest.param({"a": {}}, {}, {}, {"a": {}}, id="an empty map that the upstream drops"),
        pytest.param({"n": 3}, {"n": 5}, {"n": 3}, {"n": 3}, id="drift: what is to be put back"),
    ],
)
def test_only_what_the_object_has_is_a_base(applied: Any, live: Any, render: Any, expected: Any) -> None:
    assert believed(applied, live, render) == expected


LEAVES = st.sampled_from(["a", "b", 1, True])
NAMES = st.sampled_from(["x", "y", "z"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(NAMES, VALUES, max_size=3)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    if isinstance(value, dict):
        return {leaf for key, item in value.items() for leaf in leaves(item, (*path, key))}
    if isinstance(value, list):
        return {leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))}
    return {(*path, repr(value))}


@given(applied=SPECS, live=SPECS, render=SPECS)
def test_merge_base_is_live_or_rendered(applied: Any, live: Any, render: Any) -> None:
    assert leaves(believed(applied, live, render)) <= leaves(live) | leaves(render)


@given(spec=SPECS, more=SPECS, render=SPECS)
def test_true_record_is_trusted_unchanged(spec: Any, more: Any, render: Any) -> None:
    assert believed(spec, {**more, **spec}, render) == spec


@pytest.mark.parametrize(("runs", "expected"), [("i:1", "i:1"), ("other", None)])
def test_record_image_that_does_not_run_is_dropped(runs: str, expected: str | None) -> None:
    live = {"metadata": {"annotations": {"x": "i:1"}}, "spec": {"containers": [{"image": runs}]}}

    assert record_trust.without_unused_image(record({}, "i:1"), live).image == expected


@pytest.mark.parametrize(
    ("version", "read"),
    [
        ("kaito.sh/v1beta1", True),
        ("v1", True),
        ("ray.io/v1", True),
        ("kaito.sh/v1/../../../api/v1/secrets", False),
        ("kaito.sh/v1?watch=1", False),
        ("kaito.sh/..", False),
        ("kaito.sh/%2e%2e", False),
        (["v1"], False),
        pytest.param("v1\n", False, id="line break"),
    ],
)
def test_record_with_invalid_version_is_unreadable(version: Any, read: bool) -> None:
    parts = [{"apiVersion": version, "kind": "E", "metadata": {}}, {}, "", None]
    packed = base64.b64encode(zlib.compress(json.dumps(parts).encode())).decode()

    record_ = manifest.applied({"metadata": {"annotations": {"kubefoundry.ai/applied": packed}}})

    assert (record_ is not None) is read
