"""One model: where it is, why there, what was written for it, and what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli import upstream
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.commands.explain import result_of, values_read
from kubefoundry_cli.commands.status import pod_state
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.health import health_of, provider_of
from kubefoundry_cli.live_objects import live_of
from kubefoundry_cli.model import valid
from kubefoundry_cli.output import since
from kubefoundry_cli.pods import NotToBeFound, of_model
from kubefoundry_cli.providers import as_running, in_cluster, named
from kubefoundry_dashboard.actions import offered
from kubefoundry_dashboard.live import NAME
from kubefoundry_dashboard.models import cells
from kubefoundry_dashboard.page import opened, page
from kubefoundry_dashboard.verdict import judged
from kubefoundry_sdk.api.handover import holders
from kubefoundry_sdk.api.kinds import CORE_EVENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

routes = web.RouteTableDef()

PATH: Final = f"/models/{{namespace:{NAME}}}/{{name:{NAME}}}"

PODS_ASKED: Final = 20
"""Pods whose Events are read."""

EVENTS_SHOWN: Final = 100

SEQUENCE: Final = ("Validated", "ProviderSelected", "ProviderCompatible", "ResourceCreated", "Ready")
"""Conditions in the order in which they come: stamps have seconds, and much happens in one."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened; after: seconds since the model was created."""

    stamp: str
    after: float
    what: str
    detail: str


async def read(session: Session, request: web.Request) -> Object:
    """The model of the path. Raises Failure."""
    return await session.model(request.match_info["name"])


def shown(
    request: web.Request, template: str, obj: Object, *, live: bool = True, **values: Any
) -> web.Response:
    """A tab of the model's page."""
    meta = obj["metadata"]
    return page(
        request,
        template,
        obj=obj,
        row=cells(obj),
        health=health_of(obj),
        base=f"/models/{meta['namespace']}/{meta['name']}",
        stream=f"/live/models/{meta['namespace']}/{meta['name']}?since={meta['resourceVersion']}"
        if live
        else "",
        **values,
    )


@routes.get(PATH)
async def status(request: web.Request) -> web.Response:
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        pods, no_pods = await _pods(session, obj)
        allowed = await offered(request, session, obj)
    return shown(
        request,
        "status.html",
        obj,
        pods=[(pod, pod_state(pod.get("status") or {})) for pod in pods],
        no_pods=no_pods,
        steps=steps(obj, pods),
        offered=allowed,
    )


@routes.get(f"{PATH}/why")
async def why(request: web.Request) -> web.Response:
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        verdict = await judged(session, obj)
    return shown(request, "why.html", obj, verdict=verdict, values_read=values_read, result_of=result_of)


@routes.get(f"{PATH}/objects")
async def objects(request: web.Request) -> web.Response:
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        problem, kind, values = "", "", list[upstream.Value]()
        try:
            kind, values = await _values(session, obj)
        except Failure as failure:
            problem = failure.message
    return shown(request, "objects.html", obj, kind=kind, values=values, problem=problem)


@routes.get(f"{PATH}/events")
async def events(request: web.Request) -> web.Response:
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        pods, no_pods = await _pods(session, obj)
        problem, found = "", list[Object]()
        try:
            found = await _events(session, obj, pods)
        except (ApiError, Unreachable) as error:
            problem = of(error, "list Events").message
    return shown(request, "events.html", obj, events=found, problem=problem, no_pods=no_pods)


@routes.get(f"{PATH}/yaml")
async def yaml(request: web.Request) -> web.Response:
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return shown(request, "yaml.html", obj, plain={**obj, "metadata": meta})


async def _pods(session: Session, obj: Object) -> tuple[list[Object], str]:
    """The pods, or why they cannot be shown."""
    try:
        return await of_model(session, obj), ""
    except NotToBeFound as error:
        return [], str(error)


async def _values(session: Session, obj: Object) -> tuple[str, list[upstream.Value]]:
    """Kind and values of the upstream object. Raises Failure."""
    name = next(iter(holders(obj)), provider_of(obj))
    if name is None:
        raise Failure("no provider is selected for this model yet")
    provider = named(name)
    try:
        provider, settings, _ = await as_running(session.client, provider)
        schema, _ = await in_cluster(session.client, provider, settings)
        kind = provider.upstream.served(schema.api_version)
        live = await live_of(session, kind, obj)
    except (ApiError, Unreachable) as error:
        raise of(error, f"read what {provider.title} wrote for '{obj['metadata']['name']}'") from error
    if live is None:
        raise Failure(f"{provider.title} has not created a {kind.kind} for this model yet")
    values = await asyncio.to_thread(upstream.values, provider, valid(obj), schema, live)
    return f"{kind.kind} {live['metadata']['name']}", values


async def _events(session: Session, obj: Object, pods: Iterable[Object]) -> list[Object]:
    """Of the model, of the upstream object, which has its name, and of its pods; the newest first."""
    meta = obj["metadata"]
    called = [meta["name"], *(pod["metadata"]["name"] for pod in pods)][: PODS_ASKED + 1]
    found = await asyncio.gather(
        *(
            session.client.list(
                CORE_EVENTS, meta["namespace"], selector={"fieldSelector": f"involvedObject.name={name}"}
            )
            for name in called
        )
    )
    events = [event for part, _ in found for event in part]
    return sorted(events, key=_when, reverse=True)[:EVENTS_SHOWN]


def _when(event: Object) -> str:
    """Writers of either API fill in other fields."""
    series = event.get("series") or {}
    stamps = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((stamp for stamp in stamps if stamp), event["metadata"]["creationTimestamp"]))


def steps(obj: Object, pods: Iterable[Object]) -> list[Step]:
    """Creation, each condition's last transition, and what the pods went through, in the order of time."""
    entries = [(obj["metadata"]["creationTimestamp"], "created", "")]
    conditions = [one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type")]
    order = {name: place for place, name in enumerate(SEQUENCE)}
    for condition in sorted(conditions, key=lambda one: order.get(one["type"], 0)):
        if condition["type"] == "Ready":
            for pod in pods:
                entries += _of_pod(pod)
        what = f"{condition['type']} is {condition.get('status')}"
        entries.append((condition.get("lastTransitionTime"), what, condition.get("reason") or ""))
    first = since(obj["metadata"]["creationTimestamp"]) or 0.0
    known = [
        Step(str(stamp), float(max(0, round(first - ago))), what, detail)
        for stamp, what, detail in entries
        if (ago := since(stamp)) is not None
    ]
    return sorted(known, key=lambda step: step.after)


def _of_pod(pod: Object) -> list[tuple[str | None, str, str]]:
    name = f"pod {pod['metadata']['name']}"
    return [
        (condition.get("lastTransitionTime"), f"{name}: {condition.get('type')}", "")
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition.get("status") == "True"
    ]
