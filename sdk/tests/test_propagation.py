"""Labels and annotations that pass from a ModelDeployment to its upstream object, and when they are written."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._provider import propagation, results
from kubefoundry_sdk._provider.contract import QUEUE_LABEL, Propagation, Provider
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.plan import Plan
from support.plans import V1, changed, deployment, planned, provider

QUEUED = {QUEUE_LABEL: "models"}


def passing(*labels: str, annotations: tuple[str, ...] = ()) -> Provider:
    return replace(provider(), propagates=Propagation(labels, annotations))


def labels(todo: Plan) -> dict[str, str]:
    """Return the labels of the main object that are not KubeFoundry's own."""
    own = {names.MANAGED_BY_LABEL, "kubefoundry.ai/provider"}
    return {key: value for key, value in todo.main["metadata"]["labels"].items() if key not in own}


def by_earlier_release(todo: Plan) -> Plan:
    """Return the plan as a release wrote it that passed no labels."""
    del todo.main["metadata"]["annotations"][names.PROPAGATED_ANNOTATION]
    return todo


def test_queue_label_passes_by_default() -> None:
    model = deployment(labels={**QUEUED, "team": "a"})

    assert labels(planned(model)) == QUEUED


def test_render_is_unchanged_without_a_listed_label() -> None:
    model = deployment(labels={"team": "a"})
    subject = provider()

    rendered = results.render(subject, model, V1)

    assert rendered == subject.render(model, V1)
    assert "labels" not in rendered.main["metadata"]


def test_listed_annotation_passes_to_the_main_object() -> None:
    subject = passing(annotations=("owner",))

    todo = planned(deployment(annotations={"owner": "a", "other": "b"}), subject=subject)

    assert todo.main["metadata"]["annotations"]["owner"] == "a"
    assert "other" not in todo.main["metadata"]["annotations"]
    assert "owner" not in todo.helpers[0]["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, QUEUED), (QUEUED, {QUEUE_LABEL: "other"}), (QUEUED, {})],
    ids=["added", "changed", "removed"],
)
def test_edited_label_is_written(before: dict[str, str], after: dict[str, str]) -> None:
    todo = planned(deployment(labels=after), planned(deployment(labels=before)))

    assert (changed(todo), labels(todo)) == (["Engine"], after)


def test_upgrade_writes_nothing_to_a_model_that_has_the_label() -> None:
    live = by_earlier_release(planned(deployment()))
    model = deployment(labels=QUEUED)

    todo = planned(model, live)

    assert todo.changed == []
    assert "set annotation kubefoundry.ai/refresh" in propagation.note(todo.main, Propagation(), model)


@pytest.mark.parametrize(
    ("at_upgrade", "later"),
    [({}, QUEUED), (QUEUED, {QUEUE_LABEL: "other"}), (QUEUED, {})],
    ids=["added", "changed", "removed"],
)
def test_edited_label_of_an_older_model_waits_for_a_spec_edit(
    at_upgrade: dict[str, str], later: dict[str, str]
) -> None:
    live = planned(deployment(labels=at_upgrade), subject=passing())

    label_only = planned(deployment(labels=later), live)
    edit = planned(deployment({"image": "other:1"}, labels=later), live)
    again = planned(deployment({"image": "other:1"}, labels=later), edit)
    label_edit = planned(deployment({"image": "other:1"}, labels={QUEUE_LABEL: "third"}), edit)

    assert label_only.changed == []
    assert (changed(edit), labels(edit)) == (["Engine"], later)
    assert again.changed == []
    assert (changed(label_edit), labels(label_edit)) == (["Engine"], {QUEUE_LABEL: "third"})


def test_upgrade_writes_nothing_when_an_edit_had_no_effect() -> None:
    live = planned(deployment(), subject=passing())
    model = deployment({"provider": {"name": "example"}}, labels=QUEUED)

    assert planned(model, live).changed == []


def test_invalid_edit_of_an_older_model_calls_no_provider() -> None:
    live = planned(deployment(), subject=passing())
    edited = deployment({"engine": {"type": "trtllm"}}, labels=QUEUED)
    strict = replace(provider(), supports=never_called)

    reduced = compatibility.as_written(strict, edited, V1, manifest.applied(live.main), live.main)

    assert compatibility.check(reduced, edited, V1).problems == ("Example does not support trtllm engine",)


def test_unchanged_older_model_calls_no_provider() -> None:
    live = planned(deployment(), subject=passing())
    record = manifest.applied(live.main)
    model = pinned(deployment(labels=QUEUED), record)
    strict = replace(provider(), supports=never_called, render=never_called)

    reduced = compatibility.as_written(strict, model, V1, record, None)

    assert QUEUE_LABEL not in reduced.propagates.labels


def never_called(*_: Any) -> Any:
    raise AssertionError("the provider was called")


def test_drift_repair_of_an_older_model_leaves_the_label_out() -> None:
    live = planned(deployment(), subject=passing())
    model = deployment(labels=QUEUED)
    live.main["spec"]["serve"] = 5

    repair = planned(model, live)
    again = planned(model, repair)

    assert (repair.drifted, labels(repair)) == (("spec.serve",), {})
    assert again.changed == []


def test_refresh_after_an_upgrade_applies_the_label() -> None:
    live = by_earlier_release(planned(deployment()))
    model = deployment(labels=QUEUED, annotations={names.REFRESH_ANNOTATION: "1"})

    todo = planned(model, live)

    assert labels(todo) == QUEUED
    assert propagation.note(todo.main, Propagation(), model) == ""


def test_longer_list_writes_nothing() -> None:
    model = deployment(labels={"team": "a"})

    todo = planned(model, planned(model), passing("team"))

    assert todo.changed == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", "is not a label key"),
        ("kubefoundry.ai/refresh", "is set by KubeFoundry or kubectl"),
        ("kubectl.kubernetes.io/last-applied-configuration", "is set by KubeFoundry or kubectl"),
    ],
)
def test_invalid_key_is_refused(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=words):
        propagation.keys(text)


def test_keys_are_read_once_each() -> None:
    assert propagation.keys("team, example.com/cost,team,") == ("team", "example.com/cost")
