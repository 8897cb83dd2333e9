"""What others have changed upstream, in a plan: put back, left to them, or part of a change of the user's."""

from __future__ import annotations

from support.plans import changed, deployment, planned


def test_fields_of_others_are_no_drift_and_stay() -> None:
    live = planned(deployment())
    live.main["spec"]["groups"][0]["replicas"] = 7

    still = planned(deployment(), live)
    scaled = planned(deployment({"scaling": {"replicas": 3}}), live)

    assert still.drifted == ()
    assert scaled.main["spec"]["groups"][0]["replicas"] == 7
    assert scaled.main["spec"]["serve"] == 3


def test_recreated_object_begins_with_the_rendered_counts() -> None:
    live = planned(deployment())
    live.main["spec"]["groups"][0]["replicas"] = 7

    todo = planned(deployment({"engine": {"type": "vllm", "contextLength": 4096}}), live)

    assert todo.recreate == "context"
    assert todo.main["spec"]["groups"][0]["replicas"] == 1


def test_changed_own_fields_are_drift() -> None:
    live = planned(deployment())
    live.main["spec"]["context"] = 5
    del live.main["metadata"]["labels"]["kubefoundry.ai/managed-by"]

    todo = planned(deployment(), live)

    assert todo.drifted == ("metadata.labels.kubefoundry.ai/managed-by", "spec.context")
    assert todo.changed == []


def test_changed_helper_is_repaired() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment(), live)

    assert (changed(todo), todo.recreate) == (["ConfigMap"], None)


def test_write_caused_by_drift_is_a_correction() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment(), live)
    [(obj, paths)] = todo.repairs

    assert (obj["kind"], paths) == ("ConfigMap", ("data.served",))


def test_removed_record_is_repaired() -> None:
    live = planned(deployment())
    del live.main["metadata"]["annotations"]["kubefoundry.ai/applied"]

    [(obj, paths)] = planned(deployment(), live).repairs

    assert (obj["kind"], paths) == ("Engine", ("metadata.annotations.kubefoundry.ai/applied",))


def test_user_edit_is_no_correction_despite_drift() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = planned(deployment({"scaling": {"replicas": 3}}), live)

    assert (changed(todo), todo.repairs) == (["ConfigMap", "Engine"], [])
