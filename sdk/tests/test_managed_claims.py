"""The names of the claims that core creates, and where providers find them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import formats, validation
from kubefoundry_sdk._api.managed_claims import LONGEST, claim_name, templates
from kubefoundry_sdk.pod import storage_notes, with_pod_settings
from kubefoundry_sdk.testing.generated import deployment

TEMPLATE = {"name": "weights", "purpose": "modelCache", "claimTemplate": {"size": "1Gi"}}
SPEC: dict[str, Any] = {
    "model": {"id": "org/model", "storage": {"volumes": [TEMPLATE]}},
    "engine": {"type": "llamacpp"},
}

LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(LABELS, LABELS)
def test_claim_name_is_short_and_valid(model: str, volume: str) -> None:
    name = claim_name(model, volume)

    assert formats.is_name(name)
    assert len(name) <= LONGEST
    assert len(f"{model}-{volume}") > LONGEST or name == f"{model}-{volume}"


def test_long_claim_names_differ_by_the_end_of_the_volume() -> None:
    first, second = (claim_name("m" * 60, f"weights-{number}") for number in (1, 2))

    assert first != second
    assert first[:50] == second[:50]


def test_provider_finds_the_name_of_each_claim() -> None:
    given_name = {"name": "data", "claimName": "d", "mountPath": "/data"}
    storage = {"volumes": [TEMPLATE, given_name]}

    made = deployment({**SPEC, "model": {"id": "m", "storage": storage}}, name="llama")

    assert [volume.claim_name for volume in made.spec.model.storage.volumes] == ["llama-weights", "d"]
    assert with_pod_settings({}, made.spec)["volumes"] == [
        {"name": "weights", "persistentVolumeClaim": {"claimName": "llama-weights"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
    ]


def test_claim_of_a_template_renders_as_a_named_claim() -> None:
    volume = {"name": "weights", "purpose": "modelCache", "claimName": "llama-weights"}
    named = deployment({**SPEC, "model": {"id": "m", "storage": {"volumes": [volume]}}}, name="llama")
    made = deployment(SPEC, name="llama")

    assert with_pod_settings({}, made.spec) == with_pod_settings({}, named.spec)


@pytest.mark.parametrize(("mode", "notes"), [("ReadWriteOnce", 1), ("ReadWriteMany", 0)])
def test_template_access_mode_is_noted_if_several_pods_mount_it(mode: str, notes: int) -> None:
    volume = {**TEMPLATE, "claimTemplate": {"size": "1Gi", "accessMode": mode}}
    made = deployment({**SPEC, "model": {"id": "m", "storage": {"volumes": [volume]}}})

    assert len(storage_notes(made.spec, 2)) == notes


@pytest.mark.parametrize("spec", [None, 1, {"model": []}, {"model": {"storage": {"volumes": {"a": 1}}}}])
def test_corrupt_spec_has_no_templates(spec: Any) -> None:
    assert list(templates(spec)) == []


def test_claim_without_a_size_is_refused() -> None:
    volume = {**TEMPLATE, "claimTemplate": {"size": 0}}

    problems = validation.validate({**SPEC, "model": {"id": "org/model", "storage": {"volumes": [volume]}}})

    assert [f"{problem.path}: {problem.message}" for problem in problems] == [
        "spec.model.storage.volumes[weights].claimTemplate.size: must be more than 0"
    ]


def test_replicas_of_one_node_are_warned_about() -> None:
    assert validation.warnings(SPEC) == []
    assert validation.warnings({**SPEC, "scaling": {"replicas": 3}}) == [
        "volume weights of model.storage: claimTemplate.accessMode is ReadWriteOnce, so all 3 replicas have to run "
        "on one node: ReadWriteMany allows several, if the StorageClass has it"
    ]
