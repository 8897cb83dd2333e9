"""What is enough to observe, to write, to delete and to adopt an upstream object (contract §7): every combination of
owners, labels, annotations, managedFields and records that a live object can have."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write import manifest
from support.plans import deployment, planned

MANAGER = "example-provider"
OURS, EARLIER, OTHER = "uid", "uid-0", "uid-1"


def owner(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment", "name": name, "uid": uid}


OWNERS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "ours": [owner("m", OURS)],
    "ours behind another": [owner("other", OTHER), owner("m", OURS)],
    "ours before another": [owner("m", OURS), owner("other", OTHER)],
    "another": [owner("other", OTHER)],
    "earlier": [owner("m", EARLIER)],
    "controller": [{"apiVersion": "v1", "kind": "Pod", "name": "m", "uid": "p", "controller": True}],
}
MARKS = (None, OURS, EARLIER, OTHER)
MANAGED = ((), ("operator",), (MANAGER,), ("operator", MANAGER))
RECORDS = ("none", "ours", "earlier", "another's", "corrupt")
LABELS = ("none", "ours", "another provider")


def record(whose: str) -> str | None:
    if whose in ("none", "corrupt"):
        return None if whose == "none" else "!"
    main = planned(deployment()).main
    record_ = manifest.applied(main)
    assert record_ is not None
    meta = record_.manifest["metadata"]
    name, uid = {"ours": ("m", OURS), "earlier": ("m", EARLIER), "another's": ("other", OTHER)}[whose]
    changed = {**meta, "name": name, "ownerReferences": [owner(name, uid)]}
    return manifest.pack(manifest.Record({**record_.manifest, "metadata": changed}, record_.spec, "", None))


PACKED = {whose: record(whose) for whose in RECORDS}


def live(owners: str, mark: str | None, managed: tuple[str, ...], whose: str, labels: str) -> Object:
    annotations = {"kubefoundry.ai/owner-uid": mark, "kubefoundry.ai/applied": PACKED[whose]}
    provider = "example" if labels == "ours" else "elsewhere"
    return {
        "metadata": {
            "name": "m",
            "namespace": "n",
            "ownerReferences": OWNERS[owners],
            "annotations": {key: value for key, value in annotations.items() if value is not None},
            "labels": {}
            if labels == "none"
            else {"kubefoundry.ai/managed-by": "kubefoundry", "kubefoundry.ai/provider": provider},
            "managedFields": [{"manager": manager, "operation": "Apply"} for manager in managed],
        }
    }


EVERY = list(itertools.product(OWNERS, MARKS, MANAGED, RECORDS, LABELS))


def test_any_owner_of_our_uid_counts_wherever_it_is() -> None:
    for case in EVERY:
        obj = live(*case)

        assert manifest.has_owner_reference(obj, OURS) is case[0].startswith("ours"), case
        if case[0].startswith("ours"):
            assert manifest.ownership(obj, name="m", uid=OURS) == "ours", case


def test_deletion_needs_the_uid_and_a_second_trace() -> None:
    for case in EVERY:
        owners, mark, managed, whose, labels = case
        uid = owners.startswith("ours") or mark == OURS
        second = MANAGER in managed or (whose == "ours" and labels == "ours")
        obj = live(*case)

        assert manifest.is_created_by(obj, OURS, MANAGER) is (uid and second), case
        assert manifest.is_created_by(obj, OURS, MANAGER, has_finalizer=True) is uid, case


def test_lost_managed_fields_change_no_deletion() -> None:
    """As the provider leaves it, whatever is lost of one trace."""
    for owners, managed, labels in itertools.product(("ours", "ours behind another"), MANAGED, LABELS):
        if MANAGER in managed or labels == "ours":
            assert manifest.is_created_by(live(owners, OURS, managed, "ours", labels), OURS, MANAGER)


def test_restored_object_has_labels_and_an_earlier_uid() -> None:
    for case in EVERY:
        owners, mark, _, whose, labels = case
        expected = (
            owners == "none"
            and labels == "ours"
            and ((mark, whose) in ((EARLIER, "earlier"), (OURS, "ours")))
        )

        assert manifest.is_restored(live(*case), name="m", provider="example") is expected, case


def test_restored_object_is_left_alone_before_adoption() -> None:
    obj = live("none", EARLIER, (), "earlier", "ours")

    assert manifest.is_restored(obj, name="m", provider="example")
    assert not manifest.is_owned_by(obj, OURS)
    assert not manifest.is_created_by(obj, OURS, MANAGER, has_finalizer=True)


def test_object_of_another_is_never_written() -> None:
    manifest_ = planned(deployment()).main
    for case in EVERY:
        owners, mark, _, whose, _ = case
        obj = live(*case)
        if (
            owners in ("another", "controller", "none")
            and mark != OURS
            and (whose, mark) != ("earlier", EARLIER)
        ):
            assert not manifest.may_be_written(obj, manifest_), case
            assert manifest.ownership(obj, name="m", uid=OURS) == "foreign", case


@pytest.mark.parametrize(
    ("owners", "mark", "expected"),
    [
        ("ours behind another", OURS, OURS),
        ("ours before another", OURS, OURS),
        ("ours behind another", EARLIER, OTHER),
        ("another", OURS, OTHER),
        ("none", EARLIER, EARLIER),
        ("none", None, None),
    ],
)
def test_helper_is_indexed_by_the_owner_that_it_names(
    owners: str, mark: str | None, expected: str | None
) -> None:
    assert manifest.owner_uid(live(owners, mark, (), "none", "ours")) == expected
