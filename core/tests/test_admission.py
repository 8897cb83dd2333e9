"""AdmissionReview in, AdmissionReview out."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import jsonpatch
import pytest

from kubefoundry_core.admission import modeldeployments, providerconfigs
from kubefoundry_core.admission.review import Malformed
from kubefoundry_sdk._api import names, validation

GOOD: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}
BAD: dict[str, Any] = {"engine": {"type": "vllm"}}
READY = {
    "metadata": {"name": "acme"},
    "status": {"conditions": [{"type": "UpstreamReady", "status": "True"}]},
}


def review(
    spec: Any,
    *,
    old: Any = None,
    deleting: bool = False,
    kind: str = "ModelDeployment",
    name: str | None = "x",
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name} if name else {"generateName": "x-"}
    if deleting:
        meta["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    request: dict[str, Any] = {
        "uid": "u-1",
        "kind": {"group": "kubefoundry.ai", "version": "v1alpha1", "kind": kind},
        "operation": "CREATE" if old is None else "UPDATE",
        "object": {"metadata": meta, **({} if spec is None else {"spec": spec})},
        "oldObject": None if old is None else {"metadata": meta, "spec": old, "status": status or {}},
    }
    if name:
        request["name"] = name
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def response(answer: dict[str, Any]) -> dict[str, Any]:
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "u-1"
    return dict(answer["response"])


def merged(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**spec, **more}


def mutated(spec: dict[str, Any]) -> dict[str, Any]:
    answer = response(modeldeployments.mutate(review(spec)))
    assert answer["allowed"] is True
    if "patch" not in answer:
        return spec
    assert answer["patchType"] == "JSONPatch"
    operations = json.loads(base64.b64decode(answer["patch"]))
    patched: dict[str, Any] = jsonpatch.apply_patch({"spec": spec}, operations)["spec"]
    return patched


@pytest.mark.parametrize(
    "spec",
    [
        {},
        GOOD,
        BAD,
        merged(GOOD, model={"id": "a/b", "source": None}),
        merged(GOOD, scaling={"replicas": 0}, nodeSelector={"a/b~c": "d"}),
        merged(GOOD, env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
        merged(GOOD, serving={"mode": "disaggregated"}, scaling={"prefill": {}, "decode": {"gpu": {}}}),
    ],
)
def test_admission_patch_adds_the_defaults_of_validation(spec: dict[str, Any]) -> None:
    after = mutated(spec)

    assert validation.default(after) == validation.default(spec)
    assert {key: value for key, value in after.items() if value is not None} == validation.default(spec)


def test_nulls_are_removed_but_not_from_overrides() -> None:
    spec = merged(
        GOOD,
        model={"id": "org/model", "servedName": None},
        engine={"type": "llamacpp", "args": {"a~/b": None, "c": "1"}},
        image=None,
        nodeSelector=None,
        env=[{"name": "A", "value": None}],
        provider={"name": "acme", "overrides": {"a": None}},
    )

    after = mutated(spec)

    assert after == validation.default(
        merged(
            GOOD,
            engine={"type": "llamacpp", "args": {"c": "1"}},
            env=[{"name": "A"}],
            provider={"name": "acme", "overrides": {"a": None}},
        )
    )


@pytest.mark.parametrize(("name", "instead"), [("llama-3.1-8b", "llama-3-1-8b"), ("a.b.c", "a-b-c")])
def test_dotted_name_is_refused_with_the_name_to_use(name: str, instead: str) -> None:
    answer = response(modeldeployments.validate(review(GOOD, name=name), {}))

    assert answer["status"]["message"] == (
        f'ModelDeployment "{name}" is invalid: metadata.name: has a dot, which no Service may have: use "{instead}"'
    )


def test_stored_object_with_a_dotted_name_may_change() -> None:
    changed = merged(GOOD, scaling={"replicas": 2})

    assert response(modeldeployments.validate(review(changed, old=GOOD, name="a.b"), {}))["allowed"] is True


def test_admission_patches_no_defaulted_spec() -> None:
    assert "patch" not in response(modeldeployments.mutate(review(validation.default(GOOD))))


@pytest.mark.parametrize("spec", [None, "text", [1]])
def test_mutation_leaves_invalid_spec_to_the_schema(spec: Any) -> None:
    assert response(modeldeployments.mutate(review(spec))) == {"uid": "u-1", "allowed": True}


def test_admission_rejection_lists_problems_as_kubernetes_does() -> None:
    answer = response(modeldeployments.validate(review(BAD), {}))

    assert answer["allowed"] is False
    assert answer["status"]["code"] == 422
    assert answer["status"]["reason"] == "Invalid"
    assert answer["status"]["message"] == (
        'ModelDeployment "x" is invalid: ['
        "spec.model.id: model.id is required when source is huggingface, "
        "spec.resources.gpu.count: vLLM engine requires GPU (set resources.gpu.count > 0)]"
    )
    assert [cause["field"] for cause in answer["status"]["details"]["causes"]] == [
        "spec.model.id",
        "spec.resources.gpu.count",
    ]


def test_admission_rejection_of_one_problem_has_no_brackets() -> None:
    answer = response(modeldeployments.validate(review({"engine": {"type": "llamacpp"}}, name=None), {}))

    assert answer["status"]["message"] == (
        'ModelDeployment "x-" is invalid: spec.model.id: model.id is required when source is huggingface'
    )


@pytest.mark.parametrize(
    ("count", "before", "prefix", "allowed"),
    [
        pytest.param(65, None, "kubefoundry.ai", False, id="create"),
        pytest.param(64, None, "kubefoundry.ai", True, id="as many as are copied"),
        pytest.param(3000, None, "tenant.example", True, id="of somebody else"),
        pytest.param(65, 65, "kubefoundry.ai", True, id="stored before the rule"),
        pytest.param(65, 64, "kubefoundry.ai", False, id="one more"),
        pytest.param(80, 90, "kubefoundry.ai", True, id="fewer"),
    ],
)
def test_labels_that_are_copied_are_few(count: int, before: int | None, prefix: str, allowed: bool) -> None:
    asked = review(GOOD, old=None if before is None else GOOD)
    for part, number in (("object", count), ("oldObject", before)):
        if number is not None:
            labels = {f"{prefix}/l{one}": "x" for one in range(number)}
            asked["request"][part]["metadata"] = {**asked["request"][part]["metadata"], "labels": labels}

    answer = response(modeldeployments.validate(asked, {}))

    assert answer["allowed"] is allowed
    if not allowed:
        assert "at most 64 are copied to upstream objects" in answer["status"]["message"]


@pytest.mark.parametrize(
    ("annotation", "old", "left", "allowed"),
    [
        pytest.param(100_000, None, 10_000, False, id="create"),
        pytest.param(10, None, 10_000, True, id="a small one has room"),
        pytest.param(10, None, 0, False, id="not even a small one has room"),
        pytest.param(100_000, None, 2**30, True, id="there is room"),
        pytest.param(100_000, 10, 10_000, False, id="grows"),
        pytest.param(10, 100_000, 0, True, id="shrinks"),
        pytest.param(100_000, 97_000, 0, True, id="grows a little: a finalizer"),
    ],
)
def test_namespace_limit_fits_every_process(
    annotation: int, old: int | None, left: int, allowed: bool
) -> None:
    asked = review(GOOD, old=None if old is None else GOOD)
    text = random.Random(1).randbytes(100_000).hex()
    for part, size in (("object", annotation), ("oldObject", old)):
        if size is not None:
            meta = asked["request"][part]["metadata"]
            asked["request"][part]["metadata"] = {**meta, "namespace": "n", "annotations": {"x": text[:size]}}

    answer = response(modeldeployments.validate(asked, {}, lambda namespace: left))

    assert answer["allowed"] is allowed
    if not allowed:
        assert "delete some" in answer["status"]["message"]


@pytest.mark.parametrize(
    ("spec", "old", "deleting", "allowed"),
    [
        pytest.param(BAD, None, False, False, id="create"),
        pytest.param(BAD, GOOD, False, False, id="update to a bad spec"),
        pytest.param(GOOD, BAD, False, True, id="update to a good spec"),
        pytest.param(BAD, BAD, False, True, id="bad spec as it was: labels, finalizers"),
        pytest.param(BAD, GOOD, True, True, id="being deleted"),
        pytest.param(BAD, BAD, True, True, id="finalizer of a deleted object"),
        pytest.param(None, BAD, False, False, id="update without a spec"),
    ],
)
def test_rules_meet_new_specs_of_objects_that_stay(
    spec: Any, old: Any, deleting: bool, allowed: bool
) -> None:
    asked = review(spec, old=old, deleting=deleting)

    assert response(modeldeployments.validate(asked, {}))["allowed"] is allowed
    assert response(modeldeployments.mutate(asked))["allowed"] is True


@pytest.mark.parametrize(
    ("spec", "registered", "warnings"),
    [
        (GOOD, {}, []),
        (
            merged(GOOD, model={"source": "custom", "servedName": "m"}, image="a/b"),
            {},
            ["servedName is ignored for custom source"],
        ),
        (
            merged(GOOD, provider={"name": "typo"}),
            {"zeta": {}, "acme": {}},
            [
                "Provider 'typo' is not registered (registered: acme, zeta): name one of these, or ask an "
                "administrator to install it; kubefoundry provider list shows all"
            ],
        ),
        (
            merged(GOOD, provider={"name": "acme"}),
            {},
            [
                "Provider 'acme' is not registered (registered: none): ask an administrator to install it; "
                "kubefoundry provider list shows all"
            ],
        ),
        (merged(GOOD, provider={"name": "acme"}), {"acme": {}}, []),
        (merged(GOOD, provider={"name": "acme"}), {"acme": READY}, []),
        (
            merged(GOOD, provider={"name": "acme"}),
            {
                "acme": {
                    "status": {
                        "conditions": [
                            {"type": "UpstreamReady", "status": "False", "reason": "CRDNotInstalled"}
                        ]
                    }
                }
            },
            ["Provider 'acme' CRD not installed in cluster"],
        ),
        (
            merged(GOOD, provider={"name": "acme"}),
            {
                "acme": {
                    "status": {
                        "conditions": [
                            {
                                "type": "UpstreamReady",
                                "status": "False",
                                "reason": "UnsupportedSchema",
                                "message": "CRD lacks spec.a",
                            }
                        ]
                    }
                }
            },
            ["Provider 'acme' is not ready: CRD lacks spec.a"],
        ),
    ],
)
def test_missing_cluster_feature_is_a_warning(
    spec: dict[str, Any], registered: dict[str, Any], warnings: list[str]
) -> None:
    answer = response(modeldeployments.validate(review(spec), registered))

    assert answer["allowed"] is True
    assert answer.get("warnings", []) == warnings


CAPABLE = {"engines": ["vllm"], "servingModes": ["aggregated"], "gpuSupport": True}
RULES = [{"condition": "spec.x", "priority": 1}]


@pytest.mark.parametrize(
    ("spec", "old", "status", "warnings"),
    [
        ({"capabilities": CAPABLE}, None, None, []),
        (
            {"capabilities": {}},
            None,
            None,
            [
                "spec.capabilities.engines: with no engine this provider is never selected automatically",
                "spec.capabilities.servingModes: with no serving mode this provider is never selected"
                " automatically",
                "spec.capabilities.cpuSupport: with neither CPU nor GPU this provider is never selected"
                " automatically",
            ],
        ),
        (
            {"capabilities": {**CAPABLE, "engines": ["vllm", "tgi", "max"]}},
            None,
            None,
            [
                "spec.capabilities.engines: no ModelDeployment can request max, tgi; its engines are vllm, sglang,"
                " trtllm, llamacpp"
            ],
        ),
        (
            {"capabilities": CAPABLE, "selectionRules": [{"condition": "x" * 1025}]},
            None,
            None,
            ["spec.selectionRules[0].condition: may have 1024 characters at most, not 1025"],
        ),
        (
            {"capabilities": CAPABLE, "selectionRules": RULES},
            {"capabilities": {}, "selectionRules": RULES},
            {"conditions": [{"type": "RulesValid", "status": "False", "message": "rule 0: no field x"}]},
            ["spec.selectionRules: rule 0: no field x"],
        ),
        (
            {"capabilities": CAPABLE, "selectionRules": []},
            {"capabilities": CAPABLE, "selectionRules": RULES},
            {"conditions": [{"type": "RulesValid", "status": "False", "message": "rule 0: no field x"}]},
            [],
        ),
    ],
)
def test_registration_is_admitted_with_warnings(
    spec: Any, old: Any, status: Any, warnings: list[str]
) -> None:
    asked = review(spec, old=old, status=status, kind="InferenceProviderConfig")

    answer = response(providerconfigs.validate(asked))

    assert answer["allowed"] is True
    assert answer.get("warnings", []) == warnings


@pytest.mark.parametrize("body", [None, [], "x", {}, {"request": None}, {"request": {"uid": "u"}}])
def test_invalid_review_is_malformed(body: Any) -> None:
    for answer in (
        modeldeployments.mutate,
        providerconfigs.validate,
        lambda asked: modeldeployments.validate(asked, {}),
    ):
        with pytest.raises(Malformed):
            answer(body)


RUNNING: dict[str, Any] = {**GOOD, "image": "example.com/llama:1", "provider": {"name": "acme"}}
IN_PLACE = {"acme": {"metadata": {"name": "acme"}}}
RECREATES = {"acme": {"metadata": {"name": "acme", "annotations": {names.EDITS_RECREATE_ANNOTATION: "true"}}}}


@pytest.mark.parametrize(
    ("edit", "registered", "is_serving", "words"),
    [
        pytest.param({"image": "example.com/llama:2"}, IN_PLACE, True, None, id="in place"),
        pytest.param(
            {"image": "example.com/llama:2"},
            RECREATES,
            True,
            "almost every change with provider acme",
            id="a provider that recreates",
        ),
        pytest.param({"image": "example.com/llama:2"}, RECREATES, False, None, id="nothing serves"),
        pytest.param({"provider": {}}, RECREATES, True, None, id="the same provider, not named"),
        pytest.param({"provider": {"name": "other"}}, RECREATES, True, None, id="a hand-over"),
        pytest.param(
            {"model": {"id": "org/other"}},
            IN_PLACE,
            True,
            "a change of model.id deletes and recreates",
            id="an identity field",
        ),
    ],
)
def test_edit_that_recreates_is_warned_about(
    edit: dict[str, Any], registered: dict[str, Any], is_serving: bool, words: str | None
) -> None:
    made = review(merged(RUNNING, **edit), old=RUNNING)
    if is_serving:
        made["request"]["oldObject"]["metadata"] = {
            "name": "x",
            "finalizers": ["kubefoundry.ai/acme-provider"],
        }

    answer = response(modeldeployments.validate(made, registered))

    found = [one for one in answer.get("warnings", []) if "recreates" in one]
    assert answer["allowed"] is True
    assert [words in one for one in found if words] == ([True] if words else [])
    assert len(found) == (1 if words else 0)
