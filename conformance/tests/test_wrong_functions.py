"""Each rule of the functions has a wrong subject that fails its check and no other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from kubefoundry_conformance.functions.checks import FUNCTIONS
from kubefoundry_conformance.functions.subject import Functions
from kubefoundry_conformance.main import check_functions
from kubefoundry_sdk import (
    Deployment,
    Object,
    Observation,
    Pods,
    Provider,
    Rendered,
    Schema,
    UnsupportedSchema,
)
from support import conformance_subjects as subjects

Change = Callable[[Provider], Provider]


def probing(change: Callable[[Object, Schema | UnsupportedSchema], Schema | UnsupportedSchema]) -> Change:
    return lambda sound: replace(sound, probe=lambda crd: change(crd, sound.probe(crd)))


def rendering(change: Callable[[Deployment, Rendered], Rendered]) -> Change:
    return lambda sound: replace(
        sound,
        render=lambda deployment, schema: change(deployment, copy.deepcopy(sound.render(deployment, schema))),
    )


def observing(change: Callable[[Deployment, Object, Observation], Observation]) -> Change:
    return lambda sound: replace(
        sound, observe=lambda deployment, live: change(deployment, live, sound.observe(deployment, live))
    )


def by_release(crd: Object, schema: Schema | UnsupportedSchema) -> Schema | UnsupportedSchema:
    old = (crd["metadata"].get("labels") or {}).get("app.kubernetes.io/version") == "0.0.1"
    return UnsupportedSchema(("release 1",)) if old else schema


def by_any_version(crd: Object, schema: Schema | UnsupportedSchema) -> Schema | UnsupportedSchema:
    """Writes v1 and v1beta1, and always the one that comes first."""
    first = crd["spec"]["versions"][0]["name"]
    return Schema(f"example.com/{first}")


def by_unused_field(crd: Object, schema: Schema | UnsupportedSchema) -> Schema | UnsupportedSchema:
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
    return schema if "unused" in fields.get("properties", {}) else UnsupportedSchema(("spec.unused",))


def trusting(crd: Object, schema: Schema | UnsupportedSchema) -> Schema | UnsupportedSchema:
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "image"
    ]
    return schema


def crashing_supports(sound: Provider) -> Provider:
    def supports(deployment: Deployment, schema: Schema | None) -> list[str]:
        if not deployment.spec.resources.gpu and deployment.spec.serving.mode == "aggregated":
            return []
        assert deployment.spec.env or not deployment.spec.engine.args, "an env with every args"
        return list(sound.supports(deployment, schema))

    return replace(sound, supports=supports)


def needing_the_schema(sound: Provider) -> Provider:
    def supports(deployment: Deployment, schema: Schema | None) -> list[str]:
        assert schema is not None
        return list(sound.supports(deployment, schema))

    return replace(sound, supports=supports)


def without_a_refusal(sound: Provider) -> Provider:
    def supports(deployment: Deployment, schema: Schema | None) -> list[str]:
        return [problem for problem in sound.supports(deployment, schema) if "nodeSelector" not in problem]

    return replace(sound, supports=supports)


class Anything(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mode: Any = None


def with_content(path: str, value: Any) -> Change:
    """Sets a field of the main object; a text is formatted with the deployment."""

    def change(deployment: Deployment, rendered: Rendered) -> Rendered:
        part = rendered.main
        *parents, last = path.split(".")
        for name in parents:
            part = part[name]
        part[last] = value.format(deployment=deployment) if isinstance(value, str) else value
        return rendered

    return rendering(change)


def in_containers(change: Callable[[dict[str, Any]], object]) -> Change:
    def every(deployment: Deployment, rendered: Rendered) -> Rendered:
        for container in rendered.main["spec"]["template"]["spec"]["containers"]:
            change(container)
        return rendered

    return rendering(every)


def unescaped(container: dict[str, Any]) -> None:
    container["args"] = [entry.replace("$$(", "$(") for entry in container["args"]]


def users_labels_win(deployment: Deployment, rendered: Rendered) -> Rendered:
    labels = rendered.main["spec"]["template"]["metadata"]["labels"]
    rendered.main["spec"]["template"]["metadata"]["labels"] = {
        **labels,
        **deployment.spec.pod_template.metadata.labels,
    }
    return rendered


def with_users_labels(sound: Provider) -> Provider:
    def supports(deployment: Deployment, schema: Schema | None) -> list[str]:
        return [problem for problem in sound.supports(deployment, schema) if "podTemplate" not in problem]

    return rendering(users_labels_win)(replace(sound, supports=supports))


def another_each_time() -> Change:
    calls = iter(range(10**9))
    return rendering(
        lambda deployment, rendered: replace(
            rendered,
            main={
                **rendered.main,
                "metadata": {**rendered.main["metadata"], "labels": {"n": str(next(calls))}},
            },
        )
    )


def with_a_secret(sound: Provider) -> Provider:
    def change(deployment: Deployment, rendered: Rendered) -> Rendered:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{deployment.name}-token"}}
        return replace(rendered, helpers=(*rendered.helpers, secret))

    # HelperKind does not contain this kind.
    kinds: Any = (*sound.helper_kinds, "Secret")
    return rendering(change)(replace(sound, helper_kinds=kinds))


def state_of(live: Object) -> str:
    return str((live.get("status") or {}).get("state", ""))


def known_anyway(deployment: Deployment, live: Object, observation: Observation) -> Observation:
    return replace(observation, reason="Progressing") if observation.reason == "Unknown" else observation


def zero_at_once(deployment: Deployment, live: Object, observation: Observation) -> Observation:
    if deployment.spec.scaling.replicas == 0 and observation.replicas.ready:
        return replace(observation, phase="Pending", reason="ScaledToZero")
    return observation


def running_by_word(deployment: Deployment, live: Object, observation: Observation) -> Observation:
    if state_of(live) == "Serving" and deployment.spec.scaling.replicas:
        return replace(observation, phase="Running", reason="DeploymentReady")
    return observation


def silent_about_the_update(deployment: Deployment, live: Object, observation: Observation) -> Observation:
    return replace(observation, update_failed=False)


def strangers(sound: Provider) -> Provider:
    assert sound.pods
    return replace(sound, pods=Pods(sound.pods.label, lambda live: ["model-server"]))


WRONG: Mapping[str, tuple[Callable[[], Functions], Change]] = {
    "PRB-1": (subjects.of_a_crd, probing(by_release)),
    "PRB-2": (subjects.of_a_crd, probing(by_any_version)),
    "PRB-3": (subjects.of_a_crd, probing(by_unused_field)),
    "PRB-4": (subjects.of_a_crd, probing(trusting)),
    "SUP-1": (subjects.of_a_crd, without_a_refusal),
    "SUP-2": (subjects.of_a_crd, crashing_supports),
    "SUP-3": (subjects.of_a_crd, needing_the_schema),
    "SUP-4": (
        subjects.of_kubernetes,
        rendering(
            lambda deployment, rendered: replace(
                rendered,
                helpers=tuple(
                    {**obj, "metadata": {**obj["metadata"], "name": f"{deployment.name}-" + "x" * 40}}
                    for obj in rendered.helpers
                ),
            )
        ),
    ),
    "SUP-5": (subjects.of_kubernetes, with_users_labels),
    "SUP-6": (subjects.of_a_crd, lambda sound: replace(sound, overrides=Anything)),
    "REN-1": (subjects.of_a_crd, with_content("spec.frobnicate", True)),
    "REN-2": (subjects.of_a_crd, with_content("metadata.name", "{deployment.name}-server")),
    "REN-3": (subjects.of_a_crd, another_each_time()),
    "REN-4": (subjects.of_kubernetes, in_containers(unescaped)),
    "REN-5": (subjects.of_kubernetes, in_containers(lambda spec: spec.pop("terminationMessagePolicy"))),
    "REN-6": (subjects.of_kubernetes, with_a_secret),
    "REN-7": (subjects.of_kubernetes, rendering(lambda _, rendered: replace(rendered, image=None))),
    "OBS-1": (
        subjects.of_a_crd,
        observing(lambda _, live, seen: seen if state_of(live) else replace(seen, phase="Deploying")),
    ),
    "OBS-2": (subjects.of_a_crd, observing(known_anyway)),
    "OBS-3": (subjects.of_a_crd, observing(zero_at_once)),
    "OBS-4": (subjects.of_a_crd, observing(running_by_word)),
    "OBS-5": (subjects.of_kubernetes, observing(silent_about_the_update)),
    "OBS-7": (subjects.of_kubernetes, strangers),
    "OBS-8": (
        subjects.of_a_crd,
        observing(lambda _, live, seen: replace(seen, endpoint=replace(seen.endpoint, port=0))),
    ),
    "OBS-9": (
        subjects.of_a_crd,
        observing(
            lambda _, live, seen: (
                replace(seen, phase="Deploying", reason="Progressing") if seen.phase == "Failed" else seen
            )
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", WRONG)
def test_wrong_subject_fails_only_its_rule(rule: str) -> None:
    make, change = WRONG[rule]
    sound = make()
    cases, crd = sound.cases, sound.crd
    if rule == "PRB-3":
        crd = with_unused_field(sound)
    if rule == "OBS-1":
        cases = subjects.cases_with(cases, statuses=[case for case in cases.statuses if case.status])

    results = check_functions(Functions(change(sound.provider), crd, cases, sound.examples))

    failed = {result.rule: result for result in results if result.outcome == "failed"}
    assert set(failed) == {rule}, failed
    assert failed[rule].seen and failed[rule].expected


@pytest.mark.slow
@pytest.mark.parametrize("make", [subjects.of_a_crd, subjects.of_kubernetes])
def test_sound_subject_fails_no_rule(make: Callable[[], Functions]) -> None:
    assert [result for result in check_functions(make()) if result.outcome == "failed"] == []


def test_every_function_rule_has_a_wrong_subject() -> None:
    assert {check.rule for check in FUNCTIONS} == set(WRONG)


def with_unused_field(sound: Functions) -> Object:
    crd = sound.installed()
    for version in crd["spec"]["versions"]:
        fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        fields["unused"] = {"type": "string"}
    return crd
