"""Find problems of models: not serving, missing Secrets and ConfigMaps, objects that others keep changing."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.checks.one_model import of_pods
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_cli.health import health_of
from kubefoundry_cli.hint import kubectl
from kubefoundry_cli.output import duration, since
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, SECRETS, Object
from kubefoundry_sdk._api.untrusted import mapping, mappings, part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.recorder import REPEAT
from kubefoundry_sdk._runtime.repairs import WINDOW

SHOWN: Final = 5
"""Maximum number of models whose pods are checked."""

KINDS: Final = {kind.kind: kind for kind in (SECRETS, CONFIG_MAPS)}
SOURCES: Final = {"secretKeyRef": SECRETS.kind, "configMapKeyRef": CONFIG_MAPS.kind}
"""The kind of the source by field of `spec.env[].valueFrom`."""

DRIFT: Final = "reason=DriftDetected"
REFUSED: Final = f"reason=WriteRejected,involvedObject.kind={MODEL_DEPLOYMENTS.kind}"
"""Events about writes that admission refuses or changes. The status need not show them: it may be such a write."""

CLOCKS: Final = 60.0
"""Seconds by which the clocks of two machines may differ."""

LATE: Final = 60.0
"""Seconds by which a component may repeat an Event late: it looks at a refused write at least once a minute."""


def verdicts(models: Sequence[Object], namespace: str | None) -> Iterator[Finding]:
    """Yield each model that does not serve its newest edit or has other trouble, then the number that serve it."""
    where = f"namespace {namespace}" if namespace else "all namespaces"
    states = Counter[str]()
    for model in models:
        health = health_of(model)
        states[health.state] += 1
        if health.severity != "good":
            yield Finding(health.severity, f"model {model['metadata']['namespace']}/{health.text}")
    if not models:
        yield Finding("good", f"no models in {where}")
    elif well := states["Serving"] + states["ScaledToZero"]:
        zero = f" ({states['ScaledToZero']} scaled to zero)" if states["ScaledToZero"] else ""
        yield Finding("good", f"{well} of {len(models)} models in {where} serve their newest edit{zero}")


async def pods_of(session: Session, models: Sequence[Object]) -> list[Finding]:
    """Return the pods with problems of models that start, are being updated or are stuck: at most SHOWN models."""
    # Imported here: it loads the renderers, which a list of healthy models does not need.
    from kubefoundry_cli.pods import NotToBeFound, of_model

    findings: list[Finding] = []
    for model in [model for model in models if health_of(model).state in ("Starting", "Updating", "Stuck")][
        :SHOWN
    ]:
        try:
            findings += of_pods(await of_model(session, model))
        except NotToBeFound:
            continue
    return findings


@dataclass(slots=True)
class Reference:
    """An object that models name in their specs.

    Attributes:
        key: The key of the object that the first model reads.
        models: The names of the models.
    """

    key: str
    models: list[str] = field(default_factory=list)


async def references(session: Session, models: Sequence[Object]) -> list[Finding]:
    """Return the Secrets and ConfigMaps that models need and that do not exist.

    Only metadata is requested: no content leaves the server.
    """
    findings = list[Finding]()
    for (kind, namespace), needed in sorted(_references(models).items()):
        findings += await _missing_objects(session, kind, namespace, needed)
    return findings


async def _missing_objects(
    session: Session, kind: str, namespace: str, needed: Mapping[str, Reference]
) -> list[Finding]:
    """Return a finding for each needed object of a kind that does not exist or cannot be read."""
    findings, object_names = list[Finding](), sorted(needed)
    for number, name in enumerate(object_names):
        try:
            await session.client.get_metadata(KINDS[kind], name, namespace)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.not_found:
                findings.append(Finding("wrong", _missing(kind, namespace, name, needed[name])))
                continue
            # The API server would refuse the other objects of the namespace, too.
            is_forbidden = isinstance(error, ApiError) and error.code == 403
            unseen = object_names[number:] if is_forbidden else [name]
            named = f"{kind} {first_of([f'{namespace}/{unseen_name}' for unseen_name in unseen])}"
            findings.append(Finding("unknown", of(error, f"see whether {named} exists").message))
            if is_forbidden:
                break
    return findings


def _references(models: Sequence[Object]) -> dict[tuple[str, str], dict[str, Reference]]:
    """Return the referenced objects by name, for each kind and namespace."""
    by_kind: dict[tuple[str, str], dict[str, Reference]] = {}
    for model in models:
        meta = model["metadata"]
        for kind, name, key in _named(part(model, "spec")):
            by_name = by_kind.setdefault((kind, meta["namespace"]), {})
            reference = by_name.setdefault(name, Reference(key))
            if meta["name"] not in reference.models:
                reference.models.append(meta["name"])
    return by_kind


def _named(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and key of each object without which the model's pods cannot start."""
    token = mapping(spec.get("secrets")).get("huggingFaceToken")
    if isinstance(token, str) and token:
        yield SECRETS.kind, token, "HF_TOKEN"
    for variable in mappings(spec.get("env")):
        for source, kind in SOURCES.items():
            reference = part(variable, "valueFrom", source)
            name = reference.get("name")
            if isinstance(name, str) and name and reference.get("optional") is not True:
                yield kind, name, str(reference.get("key") or "KEY")


def _missing(kind: str, namespace: str, name: str, reference: Reference) -> str:
    who = reference.models
    quoted, key = shlex.quote(name), shlex.quote(reference.key)
    command = (
        kubectl(f"create secret generic {quoted} --from-literal={key}=…", namespace)
        if kind == SECRETS.kind
        else kubectl(f"create configmap {quoted} --from-literal={key}=…", namespace)
    )
    need = "needs" if len(who) == 1 else "need"
    return f"{kind} {namespace}/{name} does not exist, and {first_of(who)} {need} it; {command}"


def changed_by_others(events: Sequence[Object]) -> Iterator[Finding]:
    """Yield the models whose upstream objects another writer has changed within the last WINDOW seconds."""
    for (namespace, name, _), event in sorted(_newest(events, WINDOW).items()):
        yield Finding(
            "wrong",
            f"model {namespace}/{name}: {event.get('message')}; change the ModelDeployment instead, "
            "or stop that writer",
        )


def refused_writes(events: Sequence[Object], models: Sequence[Object]) -> Iterator[Finding]:
    """Yield the existing models about which a component reported a refused or changed write.

    A component repeats the Event after REPEAT seconds while the trouble lasts, so an older one is over.
    """
    current = {(model["metadata"]["namespace"], model["metadata"].get("uid")) for model in models}
    about_current = [event for event in events if _uid(event) in current]
    for (namespace, name, _), event in sorted(_newest(about_current, REPEAT + LATE).items()):
        age = duration(since(event.get("eventTime")) or 0)
        text = f"{event.get('message')} (seen {age} ago)"
        yield Finding("wrong", f"model {namespace}/{name}: {text}; that takes an administrator")


def _uid(event: Object) -> tuple[Any, Any]:
    about = mapping(event.get("involvedObject"))
    return about.get("namespace"), about.get("uid")


def _newest(events: Sequence[Object], seconds: float) -> dict[tuple[str, str, str], Object]:
    """Return the newest Event of each component about each object, if it is not older than that.

    An Event of the future is ignored, because users may write Events.
    The Events are core/v1. Users with `view` or `edit` on Kubernetes 1.26 may not read those of events.k8s.io.
    """
    newest: dict[tuple[str, str, str], Object] = {}
    for event in sorted(events, key=lambda event: str(event.get("eventTime") or "")):
        age = since(event.get("eventTime"))
        about = mapping(event.get("involvedObject"))
        if age is not None and -CLOCKS <= age <= seconds:
            component = str(event.get("reportingComponent"))
            newest[str(about.get("namespace")), str(about.get("name")), component] = event
    return newest
