"""OBS: checks of `observe`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kubefoundry_conformance.cases import Case
from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.functions.subject import Functions, build_deployment
from kubefoundry_conformance.nonsense import spoiled
from kubefoundry_sdk._api import structure
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import READY, REASONS
from kubefoundry_sdk._api.schema import structural
from kubefoundry_sdk._api.status import ModelDeploymentStatus
from kubefoundry_sdk._api.structure import Schema
from kubefoundry_sdk._provider.contract import Deployment, Observation, Provider
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk.testing.structural import storable

UNHEARD: Final = "NeverHeardOf"


def _cases(subject: Functions) -> list[Case]:
    if not subject.cases.statuses:
        raise Skipped("the cases have no `statuses`: write down what the upstream reports, and what it means")
    return subject.cases.statuses


def _observe(subject: Functions, case: Case) -> tuple[Deployment, Object, Observation]:
    deployment = build_deployment(subject.cases.spec_of(case))
    live = subject.live(deployment, case.status, case.generation, **case.object)
    return deployment, live, subject.observe(deployment, live)


def check_missing_status(subject: Functions) -> Iterator[Finding]:
    """Yield a violation if an object that nobody has reported on is not `Pending`."""
    deployment = build_deployment(subject.first())
    for status in (None, dict[str, Any]()):
        observation = subject.observe(deployment, subject.live(deployment, status))
        if observation.phase != "Pending":
            yield Finding(f"phase {observation.phase} of an object whose status is {status}", "Pending")


def check_cases(subject: Functions) -> Iterator[Finding]:
    """Compare phase, reason, ready replicas and message of each case with the author's expectation."""
    for case in _cases(subject):
        _, _, observation = _observe(subject, case)
        expected = case.expect
        if (observation.phase, observation.reason) != (expected.phase, expected.reason):
            yield Finding(
                f"{case.name}: {observation.phase}/{observation.reason}",
                f"{expected.phase}/{expected.reason}",
            )
        elif expected.ready is not None and observation.replicas.ready != expected.ready:
            yield Finding(f"{case.name}: {observation.replicas.ready} ready", f"{expected.ready} ready")
        elif expected.message not in observation.message:
            yield Finding(
                f"{case.name}: message {observation.message!r}", f"one that contains {expected.message!r}"
            )


def check_unknown_words(subject: Functions) -> Iterator[Finding]:
    """Replace each word under `states` of the cases by an unknown word, and expect the reason `Unknown`.

    Raises:
        Skipped: The cases have no such word.
    """
    if not subject.cases.states:
        raise Skipped("the cases name no `states`: paths of words whose meaning the provider knows")
    checked = False
    for case in _cases(subject):
        for path in subject.cases.states:
            deployment = build_deployment(subject.cases.spec_of(case))
            live = subject.live(deployment, case.status, case.generation, **case.object)
            if not _replace(live, path.split("."), UNHEARD):
                continue
            checked = True
            observation = subject.observe(deployment, live)
            if observation.reason not in ("Unknown", "ScaledToZero"):
                yield Finding(
                    f"{case.name} with {path}: {UNHEARD} is {observation.phase}/{observation.reason}",
                    "reason Unknown",
                )
    if not checked:
        raise Skipped(f"no case has a word at {', '.join(subject.cases.states)}")


def _replace(value: Any, path: list[str], word: str) -> bool:
    """Replace the word at a path, whose numbers name items of lists. Return whether there was one."""
    *parents, last = path
    for name in parents:
        value = _below(value, name)
    if not _below(value, last):
        return False
    value[int(last) if isinstance(value, list) else last] = word
    return True


def _below(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return value[int(name)] if name.isdecimal() and int(name) < len(value) else None
    return value.get(name) if isinstance(value, dict) else None


def check_scale_to_zero(subject: Functions) -> Iterator[Finding]:
    """Request 0 replicas in each Running case, and expect `ScaledToZero` only without a ready replica.

    Raises:
        Skipped: No case is Running.
    """
    checked = False
    for case in _cases(subject):
        if case.expect.phase != "Running":
            continue
        checked = True
        spec = subject.cases.spec_of(case.model_copy(update={"replicas": 0}))
        deployment = build_deployment(spec)
        observation = subject.observe(
            deployment, subject.live(deployment, case.status, case.generation, **case.object)
        )
        if observation.reason == "ScaledToZero" and observation.replicas.ready > 0:
            yield Finding(
                f"{case.name}: ScaledToZero while {observation.replicas.ready} are ready",
                "not before none is",
            )
    if not checked:
        raise Skipped("no case is Running")


def check_ready_replica(subject: Functions) -> Iterator[Finding]:
    """Yield a violation if an observation is Running without a ready replica."""
    for _, observation, origin in _observations(subject):
        if observation.phase == "Running" and observation.replicas.ready < 1:
            yield Finding(
                f"Running with {observation.replicas.ready} ready, of {origin}",
                "a ready replica while Running",
            )


def check_failed_update(subject: Functions) -> Iterator[Finding]:
    """Check that a case with `update_failed` stays Running, and reports the failure with a message.

    Raises:
        Skipped: No case has `update_failed`.
    """
    update_cases = [case for case in _cases(subject) if case.expect.update_failed]
    if not update_cases:
        raise Skipped("no case has `update_failed`")
    for case in update_cases:
        _, _, observation = _observe(subject, case)
        if observation.phase != "Running" or not observation.update_failed or not observation.message:
            yield Finding(
                f"{case.name}: {observation.phase}, update_failed {observation.update_failed}, "
                f"message {observation.message!r}",
                "Running, update_failed, and a message with the upstream's words",
            )


def check_pods_of_others(subject: Functions) -> Iterator[Finding]:
    """Check that no label value selects the pods of two ModelDeployments.

    Raises:
        Skipped: The provider looks at no pods.
    """
    pods = subject.provider.pods
    if pods is None:
        raise Skipped("the provider looks at no pods")
    spec = subject.first()
    statuses: list[Any] = [None, *(case.status for case in subject.cases.statuses)]
    for status in statuses:
        first, second = (subject.live(build_deployment(spec, name), status) for name in ("one", "two"))
        # Names in a status belong to the object of that status.
        first["status"], second["status"] = {}, {}
        if shared := set(pods.values(first)) & set(pods.values(second)):
            yield Finding(
                f"pods with {pods.label}={sorted(shared)} are taken for those of two deployments",
                "values that only this deployment's pods have",
            )


def check_status_schema(subject: Functions) -> Iterator[Finding]:
    """Check each observation against the CRD of ModelDeployments and the reasons of `Ready`."""
    for live, observation, origin in _observations(subject):
        if observation.reason not in REASONS[READY]:
            yield Finding(
                f"reason {observation.reason!r}, of {origin}", f"one of {', '.join(sorted(REASONS[READY]))}"
            )
        for problem in _schema_problems(subject.provider, observation, live):
            yield Finding(f"{problem}, of {origin}", "values that the CRD of ModelDeployments takes")


def _observations(subject: Functions) -> Iterator[tuple[Object, Observation, str]]:
    """Yield the observation of each case, and of each case with a corrupt status."""
    for case in _cases(subject):
        _, live, observation = _observe(subject, case)
        yield live, observation, f"case {case.name}"
        for seed in range(max(8, subject.examples // len(subject.cases.statuses))):
            deployment = build_deployment(subject.cases.spec_of(case))
            live = subject.live(deployment, None, case.generation, **case.object)
            live["status"] = _corrupt_status(subject, case, seed)
            yield live, subject.observe(deployment, live), f"case {case.name} with nonsense (seed {seed})"


def _corrupt_status(subject: Functions, case: Case, seed: int) -> Any:
    """Return the status of a case with corrupt parts, pruned to the parts that the API server would store."""
    status = spoiled(copy.deepcopy(case.status or {}), seed)
    if subject.crd is None:
        return status
    schema = subject.structure().get("properties", {}).get("status")
    return storable(schema, status) if schema else status


def check_exceptions(subject: Functions) -> Iterator[Finding]:
    """Observe unknown words and corrupt statuses, and expect no exception; `Broken` carries the finding."""
    yield from check_unknown_words(subject) if subject.cases.states else ()
    cases = _cases(subject)

    def observe(drawn: tuple[Case, int]) -> Iterator[Finding]:
        case, seed = drawn
        deployment = build_deployment(subject.cases.spec_of(case))
        live = subject.live(deployment, None, case.generation, **case.object)
        live["status"] = _corrupt_status(subject, case, seed)
        subject.observe(deployment, live)
        return iter(())

    yield from search(st.tuples(st.sampled_from(cases), st.integers(0, 2**32)), observe, subject.examples)


def _schema_problems(provider: Provider, observation: Observation, live: Object) -> list[str]:
    """Return the problems of the status that an observation yields, by the CRD of ModelDeployments."""
    status = Report(generation=3, compatible="c", created="c", observation=observation, live=live).status(
        provider
    )
    # The runtime adds times when it writes the status.
    for item in status["conditions"]:
        item["lastTransitionTime"] = "2026-11-22T00:00:00Z"
    problems = [
        f"{problem.path} {problem.message}" for problem in structure.problems(status, _status(), "status")
    ]
    published = {"endpoint": _endpoint(observation)}
    return problems or [
        f"{problem.path} {problem.message}" for problem in structure.problems(published, _status(), "status")
    ]


def _endpoint(observation: Observation) -> dict[str, Any]:
    """Return the endpoint as it would be published. The endpoint of a gateway has neither Service nor port."""
    endpoint = observation.endpoint
    optional: dict[str, Any] = {
        name: value for name in ("url", "model") if (value := getattr(endpoint, name))
    }
    if endpoint.apis:
        optional["apis"] = list(endpoint.apis)
    if (endpoint.service, endpoint.port) == ("", 0) and (endpoint.url or observation.phase != "Running"):
        return optional
    return {"service": endpoint.service, "port": endpoint.port, **optional}


@functools.cache
def _status() -> Schema:
    return structural(ModelDeploymentStatus)


CHECKS: Final = (
    Check("OBS-1", "an object without a status, and with an empty one", check_missing_status),
    Check("OBS-2", "words that nobody has heard of, and nonsense", check_exceptions),
    Check("OBS-3", "0 replicas asked for while the old ones serve", check_scale_to_zero),
    Check("OBS-4", "every case, and with nonsense", check_ready_replica),
    Check("OBS-5", "cases in which an update failed", check_failed_update),
    Check("OBS-7", "pods of two deployments", check_pods_of_others),
    Check("OBS-8", "every case, and with nonsense", check_status_schema),
    Check("OBS-9", "the table of cases", check_cases),
)
