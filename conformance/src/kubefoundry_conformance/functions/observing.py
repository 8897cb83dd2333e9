"""OBS: what `observe` reads off an upstream object's status."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from kubefoundry_conformance.cases import Case
from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.functions.subject import Functions, deployment
from kubefoundry_conformance.nonsense import spoiled
from kubefoundry_conformance.storable import storable
from kubefoundry_sdk.api import structure
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.reasons import READY, REASONS
from kubefoundry_sdk.api.schema import Schema, structural
from kubefoundry_sdk.api.status import ModelDeploymentStatus
from kubefoundry_sdk.provider.contract import Deployment, Endpoint, Observation, Provider
from kubefoundry_sdk.provider.reconcile.report import Report

UNHEARD: Final = "NeverHeardOf"


def _cases(subject: Functions) -> list[Case]:
    if not subject.cases.statuses:
        raise Skipped("the cases have no `statuses`: write down what the upstream reports, and what it means")
    return subject.cases.statuses


def _seen(subject: Functions, case: Case) -> tuple[Deployment, Object, Observation]:
    asked = deployment(subject.cases.of(case))
    live = subject.live(asked, case.status, case.generation, **case.object)
    return asked, live, subject.observe(asked, live)


def nothing_yet(subject: Functions) -> Iterator[Finding]:
    asked = deployment(subject.first())
    for status in (None, dict[str, Any]()):
        seen = subject.observe(asked, subject.live(asked, status))
        if seen.phase != "Pending":
            yield Finding(f"phase {seen.phase} of an object whose status is {status}", "Pending")


def as_the_table_says(subject: Functions) -> Iterator[Finding]:
    for case in _cases(subject):
        _, _, seen = _seen(subject, case)
        want = case.expect
        if (seen.phase, seen.reason) != (want.phase, want.reason):
            yield Finding(f"{case.name}: {seen.phase}/{seen.reason}", f"{want.phase}/{want.reason}")
        elif want.ready is not None and seen.replicas.ready != want.ready:
            yield Finding(f"{case.name}: {seen.replicas.ready} ready", f"{want.ready} ready")
        elif want.message not in seen.message:
            yield Finding(f"{case.name}: message {seen.message!r}", f"one that contains {want.message!r}")


def unheard_states(subject: Functions) -> Iterator[Finding]:
    if not subject.cases.states:
        raise Skipped("the cases name no `states`: paths of words whose meaning the provider knows")
    looked = False
    for case in _cases(subject):
        for path in subject.cases.states:
            asked = deployment(subject.cases.of(case))
            live = subject.live(asked, case.status, case.generation, **case.object)
            if not _replace(live, path.split("."), UNHEARD):
                continue
            looked = True
            seen = subject.observe(asked, live)
            if seen.reason not in ("Unknown", "ScaledToZero"):
                yield Finding(
                    f"{case.name} with {path}: {UNHEARD} is {seen.phase}/{seen.reason}", "reason Unknown"
                )
    if not looked:
        raise Skipped(f"no case has a word at {', '.join(subject.cases.states)}")


def _replace(value: Any, path: list[str], word: str) -> bool:
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not value.get(path[-1]):
        return False
    value[path[-1]] = word
    return True


def zero_once_reached(subject: Functions) -> Iterator[Finding]:
    looked = False
    for case in _cases(subject):
        if case.expect.phase != "Running":
            continue
        looked = True
        spec = subject.cases.of(case.model_copy(update={"replicas": 0}))
        asked = deployment(spec)
        seen = subject.observe(asked, subject.live(asked, case.status, case.generation, **case.object))
        if seen.reason == "ScaledToZero" and seen.replicas.ready > 0:
            yield Finding(
                f"{case.name}: ScaledToZero while {seen.replicas.ready} are ready", "not before none is"
            )
    if not looked:
        raise Skipped("no case is Running")


def serving_is_ready(subject: Functions) -> Iterator[Finding]:
    for _, seen, what in _all(subject):
        if seen.phase == "Running" and seen.replicas.ready < 1:
            yield Finding(
                f"Running with {seen.replicas.ready} ready, of {what}", "a ready replica while Running"
            )


def failed_update(subject: Functions) -> Iterator[Finding]:
    stated = [case for case in _cases(subject) if case.expect.update_failed]
    if not stated:
        raise Skipped("no case has `update_failed`")
    for case in stated:
        _, _, seen = _seen(subject, case)
        if seen.phase != "Running" or not seen.update_failed or not seen.message:
            yield Finding(
                f"{case.name}: {seen.phase}, update_failed {seen.update_failed}, message {seen.message!r}",
                "Running, update_failed, and a message with the upstream's words",
            )


def strangers_pods(subject: Functions) -> Iterator[Finding]:
    pods = subject.provider.pods
    if pods is None:
        raise Skipped("the provider looks at no pods")
    spec = subject.first()
    statuses: list[Any] = [None, *(case.status for case in subject.cases.statuses)]
    for status in statuses:
        one, two = (subject.live(deployment(spec, name), status) for name in ("one", "two"))
        # what a status says of names is its object's own
        one["status"], two["status"] = {}, {}
        if shared := set(pods.values(one)) & set(pods.values(two)):
            yield Finding(
                f"pods with {pods.label}={sorted(shared)} are taken for those of two deployments",
                "values that only this deployment's pods have",
            )


def fits_the_status(subject: Functions) -> Iterator[Finding]:
    for live, seen, what in _all(subject):
        if seen.reason not in REASONS[READY]:
            yield Finding(f"reason {seen.reason!r}, of {what}", f"one of {', '.join(sorted(REASONS[READY]))}")
        for problem in refused(subject.provider, seen, live):
            yield Finding(f"{problem}, of {what}", "values that the CRD of ModelDeployments takes")


def _all(subject: Functions) -> Iterator[tuple[Object, Observation, str]]:
    """Every case, and each of them with parts of its status replaced by nonsense."""
    for case in _cases(subject):
        _, live, seen = _seen(subject, case)
        yield live, seen, f"case {case.name}"
        for seed in range(max(8, subject.examples // len(subject.cases.statuses))):
            asked = deployment(subject.cases.of(case))
            live = subject.live(asked, None, case.generation, **case.object)
            live["status"] = _odd_status(subject, case, seed)
            yield live, subject.observe(asked, live), f"case {case.name} with nonsense (seed {seed})"


def _odd_status(subject: Functions, case: Case, seed: int) -> Any:
    """A case's status with nonsense in the place of parts, as far as the API server would store it."""
    made = spoiled(copy.deepcopy(case.status or {}), seed)
    if subject.crd is None:
        return made
    status = subject.structure().get("properties", {}).get("status")
    return storable(made, status) if status else made


def never_raises(subject: Functions) -> Iterator[Finding]:
    """`Broken` carries the finding."""
    yield from unheard_states(subject) if subject.cases.states else ()
    cases = _cases(subject)

    def look(drawn: tuple[Case, int]) -> Iterator[Finding]:
        case, seed = drawn
        asked = deployment(subject.cases.of(case))
        live = subject.live(asked, None, case.generation, **case.object)
        live["status"] = _odd_status(subject, case, seed)
        subject.observe(asked, live)
        return iter(())

    yield from search(st.tuples(st.sampled_from(cases), st.integers(0, 2**32)), look, subject.examples)


def refused(provider: Provider, seen: Observation, live: Object) -> list[str]:
    """What the CRD refuses of the status that is made of an observation; times are added when it is written."""
    status = Report(generation=3, compatible="c", created="c", observation=seen, live=live).status(provider)
    for item in status["conditions"]:
        item["lastTransitionTime"] = "2026-11-22T00:00:00Z"
    found = [
        f"{problem.path} {problem.message}" for problem in structure.problems(status, _status(), "status")
    ]
    published = {"endpoint": _endpoint(seen)}
    return found or [
        f"{one.path} {one.message}" for one in structure.problems(published, _status(), "status")
    ]


def _endpoint(seen: Observation) -> dict[str, Any]:
    """What it would be once published: a gateway's has neither Service nor port, and before there is one, nothing."""
    endpoint = seen.endpoint
    url = {"url": endpoint.url} if endpoint.url else {}
    if endpoint == Endpoint(url=endpoint.url) and (url or seen.phase != "Running"):
        return url
    return {"service": endpoint.service, "port": endpoint.port, **url}


@functools.cache
def _status() -> Schema:
    return structural(ModelDeploymentStatus)


CHECKS: Final = (
    Check("OBS-1", "an object without a status, and with an empty one", nothing_yet),
    Check("OBS-2", "words that nobody has heard of, and nonsense", never_raises),
    Check("OBS-3", "0 replicas asked for while the old ones serve", zero_once_reached),
    Check("OBS-4", "every case, and with nonsense", serving_is_ready),
    Check("OBS-5", "cases in which an update failed", failed_update),
    Check("OBS-7", "pods of two deployments", strangers_pods),
    Check("OBS-8", "every case, and with nonsense", fits_the_status),
    Check("OBS-9", "the table of cases", as_the_table_says),
)
