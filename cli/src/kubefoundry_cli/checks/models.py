"""Models that need somebody: those that do not serve, missing Secrets, objects that others keep changing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.checks.one_model import of_pods
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_cli.health import health_of
from kubefoundry_cli.output import since
from kubefoundry_sdk.api.kinds import SECRETS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime.repairs import WINDOW

SHOWN: Final = 5
"""Models that are named at most."""

DRIFT: Final = {"fieldSelector": "reason=DriftDetected"}


def verdicts(models: Sequence[Object], namespace: str | None) -> Iterator[Finding]:
    """Yield the models that do not serve their newest edit or have other trouble; if all are well, their number."""
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
    """Return the pods with problems of the first models that start or are stuck."""
    # Rendering is behind this import: a list of healthy models does not need it.
    from kubefoundry_cli.pods import NotToBeFound, of_model

    found: list[Finding] = []
    for model in [one for one in models if health_of(one).state in ("Starting", "Updating", "Stuck")][:SHOWN]:
        try:
            found += of_pods(await of_model(session, model))
        except NotToBeFound:
            continue
    return found


async def secrets(session: Session, models: Sequence[Object]) -> list[Finding]:
    """Secrets that models name and that do not exist. Only metadata is requested: no content leaves the server."""
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in models:
        meta, name = one["metadata"], ((one.get("spec") or {}).get("secrets") or {}).get("huggingFaceToken")
        if isinstance(name, str) and name:
            users[meta["namespace"], name].append(meta["name"])
    found, forbidden = [], set[str]()
    for (namespace, name), who in sorted(users.items()):
        if namespace in forbidden:
            continue
        try:
            await session.client.get_metadata(SECRETS, name, namespace)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.not_found:
                found.append(Finding("wrong", _missing(namespace, name, who)))
                continue
            if isinstance(error, ApiError) and error.code == 403:
                forbidden.add(namespace)
            found.append(
                Finding("unknown", of(error, f"see whether Secret {namespace}/{name} exists").message)
            )
    return found


def _missing(namespace: str, name: str, who: Sequence[str]) -> str:
    more = f" and {len(who) - SHOWN} more" if len(who) > SHOWN else ""
    return (
        f"Secret {namespace}/{name} does not exist, and {', '.join(who[:SHOWN])}{more} "
        f"need{'s' if len(who) == 1 else ''} it; kubectl -n {namespace} create secret generic {name} "
        "--from-literal=HF_TOKEN=…"
    )


def changed_by_others(events: Sequence[Object]) -> Iterator[Finding]:
    """Upstream objects that somebody else has changed within the time after which a provider leaves them alone."""
    last: dict[tuple[str, str], Object] = {}
    for event in sorted(events, key=lambda one: str(one.get("eventTime") or "")):
        age = since(event.get("eventTime"))
        about = event.get("regarding") or {}
        if age is not None and age <= WINDOW:
            last[str(about.get("namespace")), str(about.get("name"))] = event
    for (namespace, name), event in sorted(last.items()):
        yield Finding(
            "wrong",
            f"model {namespace}/{name}: {event.get('note')}; change the ModelDeployment instead, or stop that writer",
        )
