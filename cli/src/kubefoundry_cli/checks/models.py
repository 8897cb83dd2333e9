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
from kubefoundry_cli.output import since
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, SECRETS, Object
from kubefoundry_sdk._api.untrusted import mapping, mappings, part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.repairs import WINDOW

SHOWN: Final = 5
"""Maximum number of models whose pods are checked."""

KINDS: Final = {kind.kind: kind for kind in (SECRETS, CONFIG_MAPS)}
SOURCES: Final = {"secretKeyRef": SECRETS.kind, "configMapKeyRef": CONFIG_MAPS.kind}
"""The kind of the source by field of `spec.env[].valueFrom`."""

DRIFT: Final = {"fieldSelector": "reason=DriftDetected"}


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
    findings, forbidden = [], set[tuple[str, str]]()
    needed = sorted(_references(models).items())
    for (kind, namespace, name), reference in needed:
        if (kind, namespace) in forbidden:
            continue
        try:
            await session.client.get_metadata(KINDS[kind], name, namespace)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.not_found:
                findings.append(Finding("wrong", _missing(kind, namespace, name, reference)))
                continue
            unseen = [name]
            if isinstance(error, ApiError) and error.code == 403:
                forbidden.add((kind, namespace))
                unseen = [
                    other for (*of_kind, other), _ in needed if of_kind == [kind, namespace] and other >= name
                ]
            named = f"{kind} {first_of([f'{namespace}/{unseen_name}' for unseen_name in unseen])}"
            findings.append(Finding("unknown", of(error, f"see whether {named} exists").message))
    return findings


def _references(models: Sequence[Object]) -> dict[tuple[str, str, str], Reference]:
    """Return the referenced objects by kind, namespace and name."""
    by_object: dict[tuple[str, str, str], Reference] = {}
    for model in models:
        meta = model["metadata"]
        for kind, name, key in _named(part(model, "spec")):
            reference = by_object.setdefault((kind, meta["namespace"], name), Reference(key))
            if meta["name"] not in reference.models:
                reference.models.append(meta["name"])
    return by_object


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
    """Yield the models whose upstream objects another writer has changed within the last WINDOW seconds.

    The Events are core/v1. Users with `view` or `edit` on Kubernetes 1.26 may not read those of events.k8s.io.
    """
    last: dict[tuple[str, str], Object] = {}
    for event in sorted(events, key=lambda event: str(event.get("eventTime") or "")):
        age = since(event.get("eventTime"))
        about = event.get("involvedObject") or {}
        if age is not None and age <= WINDOW:
            last[str(about.get("namespace")), str(about.get("name"))] = event
    for (namespace, name), event in sorted(last.items()):
        yield Finding(
            "wrong",
            f"model {namespace}/{name}: {event.get('message')}; change the ModelDeployment instead, "
            "or stop that writer",
        )
