"""`observe` of a mapping. The status comes from others: a value may be missing, or of another type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.fields import MAX_INT32
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._cel.lint import Scope
from kubefoundry_sdk._functions.mapping.document import StatusMapping
from kubefoundry_sdk._functions.mapping.expression import Invalid, Variables, expression, split
from kubefoundry_sdk._functions.mapping.template import Compiler, Rendering, Template
from kubefoundry_sdk._functions.mapping.variables import with_status
from kubefoundry_sdk._provider.contract import (
    Deployment,
    Endpoint,
    Observation,
    ObservedPhase,
    ReadyReason,
    Replicas,
)
from kubefoundry_sdk._provider.results import LONGEST_SELECTOR, Fault, endpoint_problems
from kubefoundry_sdk._provider.upstream_status import count, text

_REASONS: Final[dict[ObservedPhase, ReadyReason]] = {
    "Pending": "Progressing",
    "Deploying": "Progressing",
    "Running": "DeploymentReady",
    "Failed": "Failed",
}

_REPLICA: Final = "ready replica"

Verdict = tuple[ObservedPhase, ReadyReason, str]


@dataclass(frozen=True, slots=True)
class StatusReader:
    """The compiled section `status`. A template that fails on a status has no value there."""

    kind: str
    scope: Scope
    templates: dict[str, Template]
    phases: list[tuple[ObservedPhase, Template, Template]]

    def observe(self, deployment: Deployment, live: Object, variables: Variables) -> Observation:
        """Return the state of the upstream object. Never fails, whatever the status is."""
        failures: list[str] = []
        status = mapping(live.get("status"))
        try:
            rendering = Rendering(deployment, with_status(variables, status, self.scope))
        except Fault as fault:
            replicas = Replicas(deployment.spec.scaling.replicas, 0, 0)
            message = f"{self.kind} cannot be read: {fault}"
            return Observation("Deploying", "Unknown", message, replicas, Endpoint())

        def value(template: Template) -> Any:
            try:
                return template(rendering)
            except Fault as fault:
                failures.append(str(fault))
                return None

        values = {name: value(template) for name, template in self.templates.items()}
        ready, desired = count(values["ready"]) or 0, count(values["desired"]) or 0
        endpoint = Endpoint(
            text(values["endpoint.service"]),
            count(values["endpoint.port"]) or 0,
            text(values["endpoint.url"]),
            text(values["endpoint.model"]),
        )
        missing = "" if ready else _REPLICA
        if any(endpoint_problems(endpoint)):
            endpoint, missing = Endpoint(), missing or "valid endpoint"
        verdict = self._verdict(value, bool(status), failures)
        if status:
            verdict = self._serving(verdict, desired, missing)
        phase, reason, message = verdict
        selector = text(values["selector"])
        return Observation(
            phase=phase,
            reason=reason,
            message=text(values["message"]) or message,
            replicas=Replicas(desired, ready, ready),
            endpoint=endpoint,
            updating=values["updating"] is True,
            update_failed=values["updateFailed"] is True,
            selector=selector if len(selector) <= LONGEST_SELECTOR else "",
        )

    def _serving(self, verdict: Verdict, desired: int, missing: str) -> Verdict:
        """Return the verdict, or another one if its phase needs the missing replica or endpoint."""
        phase = verdict[0]
        if phase in ("Running", "Pending") and desired == 0 and missing == _REPLICA:
            return "Pending", "ScaledToZero", "Scaled to zero"
        if phase == "Running" and missing:
            return "Deploying", "Progressing", f"{self.kind} has no {missing} yet"
        return verdict

    def _verdict(self, value: Callable[[Template], Any], has_status: bool, failures: list[str]) -> Verdict:
        if not has_status:
            return "Pending", "Progressing", f"{self.kind} has no status yet"
        for phase, condition, message in self.phases:
            if value(condition) is True:
                return phase, _REASONS[phase], text(value(message)) or f"{self.kind} is {phase}"
        failure = f": {failures[0]}" if failures else ""
        return "Deploying", "Unknown", f"{self.kind} is in a state that the mapping does not know{failure}"


def reader(section: StatusMapping, title: str, kind: str, scope: Scope) -> StatusReader:
    """Compile the section. Raise Invalid if an expression in it is invalid."""
    compiler = Compiler(title, scope)

    def condition(written: str, path: str) -> Template:
        compiled = expression(written, path, scope, condition=True)
        return lambda rendering: compiled.holds(rendering.variables)

    _check_numbers(section)
    endpoint = section.endpoint
    written = {
        "ready": section.ready,
        "desired": section.desired,
        "message": section.message,
        "selector": section.selector,
        "endpoint.service": endpoint.service,
        "endpoint.port": endpoint.port,
        "endpoint.url": endpoint.url,
        "endpoint.model": endpoint.model,
    }
    templates = {name: compiler.compile(value, f"status.{name}") for name, value in written.items()}
    templates["updating"] = condition(section.updating or "false", "status.updating")
    templates["updateFailed"] = condition(section.update_failed or "false", "status.updateFailed")
    phases = [
        (
            rule.phase,
            condition(rule.when or "true", f"status.phases[{index}].when"),
            compiler.compile(rule.message, f"status.phases[{index}].message"),
        )
        for index, rule in enumerate(section.phases)
    ]
    return StatusReader(kind, scope, templates, phases)


def _check_numbers(section: StatusMapping) -> None:
    """Raise Invalid for a count or an endpoint that no status could make valid, such as a text without `${}`."""
    endpoint = section.endpoint
    if not endpoint.url and not (endpoint.service and endpoint.port):
        raise Invalid("status.endpoint: needs a url, or service and port")
    numbers = {"ready": (section.ready, 0, MAX_INT32), "desired": (section.desired, 0, MAX_INT32)}
    if endpoint.port:
        numbers["endpoint.port"] = (endpoint.port, 1, 65535)
    for name, (written, least, most) in numbers.items():
        path = f"status.{name}"
        if not _is_number(written, path, least, most):
            raise Invalid(
                f"{path}: should be a number from {least} to {most}, or one ${{…}}, not {written!r}"
            )
    literal = Endpoint(
        _literal(endpoint.service, "a"),
        endpoint.port if isinstance(endpoint.port, int) else 1,
        _literal(endpoint.url, "http://a"),
        _literal(endpoint.model, "a"),
    )
    if problem := next(endpoint_problems(literal), None):
        raise Invalid(f"status.endpoint: has {problem}")


def _is_number(written: int | str, path: str, least: int, most: int) -> bool:
    if isinstance(written, int):
        return least <= written <= most
    return [is_expression for _, is_expression in split(written, path)] == [True]


def _literal(written: str, example: str) -> str:
    return example if "${" in written else written
