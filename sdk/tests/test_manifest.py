"""What the runtime adds to rendered objects, and whose a live object is."""

from __future__ import annotations

import base64
import lzma
import random
import string
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api.foreign_json import LEVELS, nested
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.spec_limits import too_large
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.write import manifest

RAW = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}


def deployment(**metadata: Any) -> Deployment:
    return Deployment("m", "n", "uid-1", 4, ModelDeploymentSpec.model_validate(RAW), raw_spec=RAW, **metadata)


def owner(uid: str, *, name: str = "m", kind: str = "ModelDeployment", group: str = "kubefoundry.ai") -> Any:
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "name": name, "uid": uid}


@pytest.mark.parametrize(
    ("metadata", "whose", "owned"),
    [
        pytest.param({}, "foreign", False, id="bare"),
        pytest.param({"ownerReferences": [owner("uid-1")]}, "ours", True, id="our uid"),
        pytest.param(
            {"ownerReferences": [owner("x", kind="Pod", group="v"), owner("uid-1")]},
            "ours",
            True,
            id="among others",
        ),
        pytest.param(
            {"annotations": {"kubefoundry.ai/owner-uid": "uid-1"}},
            "ours",
            False,
            id="our uid by annotation: orphaned, or the owner was taken off",
        ),
        pytest.param(
            {"annotations": {"kubefoundry.ai/owner-uid": "uid-0"}}, "foreign", False, id="orphan of another"
        ),
        pytest.param({"ownerReferences": [owner("uid-0")]}, "leaving", False, id="dead uid of our name"),
        pytest.param(
            {"ownerReferences": [owner("uid-0", name="other")]}, "foreign", False, id="another deployment's"
        ),
        pytest.param(
            {"ownerReferences": [owner("uid-1", group="other.example")]},
            "foreign",
            False,
            id="our kind's name in another group",
        ),
        pytest.param(
            {"ownerReferences": [{**owner("uid-0"), "apiVersion": "kubefoundry.ai/v9"}]},
            "foreign",
            False,
            id="a version that is not served, so nobody ever deletes it",
        ),
        pytest.param(
            {"ownerReferences": [owner("uid-1")], "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "leaving",
            True,
            id="ours, being deleted",
        ),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "leaving", False, id="foreign, being deleted"
        ),
    ],
)
def test_whose_object_it_is(metadata: dict[str, Any], whose: str, owned: bool) -> None:
    live = {"metadata": metadata}

    assert manifest.ownership(live, name="m", uid="uid-1") == whose
    assert manifest.has_owner_reference(live, "uid-1") is owned


def test_prefixed_labels_are_copied_and_replace_none() -> None:
    rendered = {"metadata": {"name": "m", "labels": {"example.com/app": "x"}}}
    labels = {"kubefoundry.ai/tier": "gold", "kubefoundry.ai/managed-by": "me", "team": "search"}

    dressed = manifest.with_ownership(rendered, deployment(labels=labels), "example")

    assert dressed["metadata"]["labels"] == {
        "example.com/app": "x",
        "kubefoundry.ai/tier": "gold",
        "kubefoundry.ai/managed-by": "kubefoundry",
        "kubefoundry.ai/provider": "example",
    }
    assert rendered == {"metadata": {"name": "m", "labels": {"example.com/app": "x"}}}


def test_record_has_manifest_spec_refresh_and_image() -> None:
    asked = deployment(annotations={"kubefoundry.ai/refresh": "2"})

    dressed = manifest.with_ownership(
        {"metadata": {"name": "m"}, "spec": {"a": 1}}, asked, "example", "image:1"
    )
    record = manifest.applied(dressed)

    assert record == manifest.Record(manifest.content(dressed), RAW, "2", "image:1")
    assert dressed["metadata"]["annotations"]["kubefoundry.ai/applied-generation"] == "4"
    assert dressed["metadata"]["ownerReferences"] == [
        {**owner("uid-1"), "controller": True, "blockOwnerDeletion": True}
    ]


@pytest.mark.parametrize("packed", ["", "!", "e30=", "eJyrVkrLz1eyUkpKLFKqBQAdegQ0"])
def test_unreadable_record_is_ignored(packed: str) -> None:
    assert manifest.applied({"metadata": {"annotations": {"kubefoundry.ai/applied": packed}}}) is None


def packed(raw: bytes) -> dict[str, Any]:
    text = base64.b64encode(zlib.compress(raw, 9)).decode()
    return {"metadata": {"annotations": {"kubefoundry.ai/applied": text}}}


def packed_as_xz(raw: bytes, preset: int = 1) -> dict[str, Any]:
    text = base64.b64encode(lzma.compress(raw, preset=preset)).decode()
    return {"metadata": {"annotations": {"kubefoundry.ai/applied": text}}}


@pytest.mark.parametrize(
    "letters",
    [string.ascii_letters + string.digits, "äöü€漢字", "🙂🚀🧠"],
    ids=["1 byte", "2 and 3 bytes", "4 bytes"],
)
def test_record_of_the_largest_spec_fits_an_annotation(letters: str) -> None:
    """What repeats nothing but is rendered as it is: annotations of pods."""
    picked = random.Random(1)
    values: dict[str, str] = {}
    while too_large({"podTemplate": values}) is None:
        values[f"x{len(values)}"] = "".join(picked.choices(letters, k=2_000))
    del values[f"x{len(values) - 1}"]
    spec = {"podTemplate": values}

    dressed = manifest.with_ownership(
        {"metadata": {"name": "m"}, "spec": {"template": {"metadata": {"annotations": values}}}},
        replace(deployment(), raw_spec=spec),
        "example",
    )

    annotations = dressed["metadata"]["annotations"]
    assert sum(len(key) + len(value) for key, value in annotations.items()) < 256 * 1024
    record = manifest.applied(dressed)
    assert record is not None
    assert record.spec == spec


RECORD = b'[{"metadata":{}},{"model":{}},"",null]'


def holding(items: bytes) -> bytes:
    return RECORD.replace(b'{"model":{}}', b'{"model":[' + items + b"1]}")


def test_packed_record_of_an_object_is_read() -> None:
    assert manifest.applied(packed(RECORD)) == manifest.Record({"metadata": {}}, {"model": {}}, "", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "write",
    [
        lambda: packed(b" " * (200 * 2**20)),
        lambda: packed(RECORD[:-1] + b" " * manifest.RECORD_BYTES + b"]"),
        lambda: packed(b"[" * 100_000),
        lambda: packed_as_xz(b" " * (200 * 2**20)),
        lambda: packed_as_xz(RECORD, preset=9),
        lambda: packed_as_xz(b"[" * 100_000),
        lambda: packed(holding(b"{}," * manifest.RECORD_BRACKETS)),
        lambda: packed_as_xz(holding((b"[" * 300 + b"]" * 300 + b",") * 400)),
        lambda: packed_as_xz(b"{}"),
        lambda: {"metadata": {"annotations": {"kubefoundry.ai/applied": "/Td6WFoA"}}},
        lambda: {"metadata": {"annotations": {"kubefoundry.ai/applied": "/Td6WFoAAAAAAAAA"}}},
        lambda: packed(RECORD.replace(b"null", b"7")),
        lambda: packed(RECORD.replace(b"null", b'["image"]')),
        lambda: packed(b"{}"),
        lambda: packed(b"7"),
        lambda: packed(b'"four"'),
        lambda: packed(b"\xff"),
        lambda: packed(b""),
        lambda: {"metadata": {"annotations": {"kubefoundry.ai/applied": "eJw"}}},
        lambda: {"metadata": {"annotations": {"kubefoundry.ai/applied": "\u00e9"}}},
        lambda: {"metadata": {"annotations": {"kubefoundry.ai/applied": "a" * 200_000}}},
    ],
    ids=range(21),
)
def test_invalid_record_is_read_with_bounded_memory(write: Callable[[], dict[str, Any]]) -> None:
    written = write()
    tracemalloc.start()
    try:
        record = manifest.applied(written)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert record is None
    assert most < 8 * manifest.RECORD_BYTES


def test_record_is_read_to_the_usual_depth() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    record = manifest.applied(packed(RECORD.replace(b"{}}", deep + b"}", 1)))

    assert record is not None
    assert not nested(record.manifest, LEVELS)


@pytest.mark.parametrize(
    ("owner", "marked", "manager", "expected"),
    [
        ("u", None, "acme-provider", True),
        (None, "u", "acme-provider", True),
        ("other", "u", "acme-provider", True),
        (None, None, "acme-provider", False),
        ("other", "other", "acme-provider", False),
        ("u", "u", "kubectl", False),
        ("u", "u", "else-provider", False),
    ],
)
def test_creator_is_recognized_by_owner_and_manager(
    owner: str | None, marked: str | None, manager: str, expected: bool
) -> None:
    live: dict[str, Any] = {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "ownerReferences": [
                {
                    "apiVersion": "kubefoundry.ai/v1alpha1",
                    "kind": "ModelDeployment",
                    "name": "m",
                    "uid": owner,
                }
            ]
            if owner
            else [],
            "annotations": {"kubefoundry.ai/owner-uid": marked} if marked else {},
            "managedFields": [{"manager": manager, "operation": "Apply"}],
        }
    }

    assert manifest.is_created_by(live, "u", "acme-provider") is expected


@pytest.mark.parametrize(
    ("removed", "watched_by_labels", "missing"),
    [
        ("labels", True, ["label kubefoundry.ai/managed-by", "label kubefoundry.ai/provider"]),
        ("labels", False, []),
        ("ownerReferences", False, ["the owner reference"]),
    ],
)
def test_lost_marks_are_named(removed: str, watched_by_labels: bool, missing: list[str]) -> None:
    rendered = {"apiVersion": "v1", "kind": "E", "metadata": {"name": "m", "labels": {}}}
    applied = manifest.with_ownership(rendered, deployment(), "acme")
    stored = {**applied, "metadata": {**applied["metadata"], removed: None}}

    assert manifest.missing_marks(applied, applied, watched_by_labels=watched_by_labels) == []
    assert manifest.missing_marks(applied, stored, watched_by_labels=watched_by_labels) == missing
