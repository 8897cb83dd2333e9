"""The pages of one model: status, provider selection, upstream object, Events and YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from kubefoundry_cli import upstream
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.explanation import result_of, values_read
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.health import health_of, provider_of
from kubefoundry_cli.live_objects import live_of
from kubefoundry_cli.model import valid_stored
from kubefoundry_cli.model_table import pod_state
from kubefoundry_cli.output import since
from kubefoundry_cli.pods import NotToBeFound, of_model
from kubefoundry_cli.providers import as_running, in_cluster, named
from kubefoundry_dashboard.actions import offer_actions
from kubefoundry_dashboard.live import NAME
from kubefoundry_dashboard.models import cells
from kubefoundry_dashboard.page import opened, page
from kubefoundry_dashboard.verdict import judge_in_cluster
from kubefoundry_sdk._api.handover import holders
from kubefoundry_sdk._api.kinds import CORE_EVENTS, Object
from kubefoundry_sdk._api.start_text import describe_start
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

routes = web.RouteTableDef()

PATH: Final = f"/models/{{namespace:{NAME}}}/{{name:{NAME}}}"

PODS_ASKED: Final = 20
"""Pods whose Events are read, at most."""

EVENTS_SHOWN: Final = 100

SEQUENCE: Final = ("Validated", "ProviderSelected", "ProviderCompatible", "ResourceCreated", "Ready")
"""Conditions in reconcile order. Timestamps are in whole seconds, and several conditions may have the same one."""


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of the model's history. `after` is in seconds since the model was created."""

    stamp: str
    after: float
    text: str
    detail: str


async def read(session: Session, request: web.Request) -> Object:
    """Read the model that the request's path names.

    Raises:
        Failure: The model is missing, or the API server refuses the request.
    """
    return await session.model(request.match_info["name"])


def render_tab(
    request: web.Request, template: str, obj: Object, *, live: bool = True, **values: Any
) -> web.Response:
    """Render a tab of the model's page. `live` reloads it whenever the model changes."""
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
    """Show a model's pods, timeline and conditions."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        pods, no_pods = await _pods(session, obj)
        allowed = await offer_actions(request, session, obj)
    return render_tab(
        request,
        "status.html",
        obj,
        pods=[(pod, pod_state(pod.get("status") or {})) for pod in pods],
        no_pods=no_pods,
        steps=steps(obj, pods),
        start=describe_start((obj.get("status") or {}).get("start"), datetime.now(UTC)),
        offered=allowed,
    )


@routes.get(f"{PATH}/why")
async def why(request: web.Request) -> web.Response:
    """Show why the model has its provider: every rule with the values that it read."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        answer, refusals = await judge_in_cluster(session, obj)
    return render_tab(
        request,
        "why.html",
        obj,
        answer=answer,
        refusals=refusals,
        values_read=values_read,
        result_of=result_of,
    )


@routes.get(f"{PATH}/objects")
async def objects(request: web.Request) -> web.Response:
    """Show the values of the upstream object, the spec fields that each value follows, and changes by others."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        problem, kind, values = "", "", list[upstream.Value]()
        try:
            kind, values = await _values(session, obj)
        except Failure as failure:
            problem = failure.message
    return render_tab(request, "objects.html", obj, kind=kind, values=values, problem=problem)


@routes.get(f"{PATH}/events")
async def events(request: web.Request) -> web.Response:
    """Show the Events of a model, its objects and its pods."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
        pods, no_pods = await _pods(session, obj)
        problem, entries = "", list[Object]()
        try:
            entries = await _events(session, obj, pods)
        except (ApiError, Unreachable) as error:
            problem = of(error, "list Events").message
    return render_tab(request, "events.html", obj, events=entries, problem=problem, no_pods=no_pods)


@routes.get(f"{PATH}/yaml")
async def yaml(request: web.Request) -> web.Response:
    """Show the ModelDeployment as YAML, without managed fields."""
    async with opened(request, request.match_info["namespace"]) as session:
        obj = await read(session, request)
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return render_tab(request, "yaml.html", obj, plain={**obj, "metadata": meta})


async def _pods(session: Session, obj: Object) -> tuple[list[Object], str]:
    """Return the model's pods, and an error message if they are unknown."""
    try:
        return await of_model(session, obj), ""
    except NotToBeFound as error:
        return [], str(error)


async def _values(session: Session, obj: Object) -> tuple[str, list[upstream.Value]]:
    """Return the title of the upstream object and its values. Raise Failure if there is none yet."""
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
    values = await asyncio.to_thread(upstream.values, provider, valid_stored(obj), schema, live)
    return f"{kind.kind} {live['metadata']['name']}", values


async def _events(session: Session, obj: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the Events of the model, the upstream object and the pods, the newest first."""
    meta = obj["metadata"]
    # The upstream object has the model's name, so one request finds the Events of both.
    involved = [meta["name"], *(pod["metadata"]["name"] for pod in pods)][: PODS_ASKED + 1]
    lists = await asyncio.gather(
        *(
            session.client.list(
                CORE_EVENTS, meta["namespace"], selector={"fieldSelector": f"involvedObject.name={name}"}
            )
            for name in involved
        )
    )
    events = [event for items, _ in lists for event in items]
    return sorted(events, key=_last_seen, reverse=True)[:EVENTS_SHOWN]


def _last_seen(event: Object) -> str:
    """Return the newest timestamp of an Event. Writers of the two Event APIs fill in different fields."""
    series = event.get("series") or {}
    stamps = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((stamp for stamp in stamps if stamp), event["metadata"]["creationTimestamp"]))


def steps(obj: Object, pods: Iterable[Object]) -> list[Step]:
    """Return the creation, the last transition of each condition, and the pods' conditions, by time."""
    entries = [(obj["metadata"]["creationTimestamp"], "created", "")]
    conditions = [
        condition for condition in (obj.get("status") or {}).get("conditions") or () if condition.get("type")
    ]
    order = {type_: position for position, type_ in enumerate(SEQUENCE)}
    for condition in sorted(conditions, key=lambda condition: order.get(condition["type"], 0)):
        # The model becomes ready after its pods, often in the same second.
        if condition["type"] == "Ready":
            for pod in pods:
                entries += _pod_entries(pod)
        text = f"{condition['type']} is {condition.get('status')}"
        entries.append((condition.get("lastTransitionTime"), text, condition.get("reason") or ""))
    age = since(obj["metadata"]["creationTimestamp"]) or 0.0
    history = [
        Step(str(stamp), float(max(0, round(age - ago))), text, detail)
        for stamp, text, detail in entries
        if (ago := since(stamp)) is not None
    ]
    # A stable sort: entries of the same second keep the order above.
    return sorted(history, key=lambda step: step.after)


def _pod_entries(pod: Object) -> list[tuple[str | None, str, str]]:
    """Return the pod's conditions that are true, as (timestamp, text, detail)."""
    name = f"pod {pod['metadata']['name']}"
    return [
        (condition.get("lastTransitionTime"), f"{name}: {condition.get('type')}", "")
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition.get("status") == "True"
    ]
