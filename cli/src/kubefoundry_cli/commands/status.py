"""`kubefoundry status`: a list of models, or all details of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

from kubefoundry_cli import cluster, output
from kubefoundry_cli.cluster import Session, Target, no_namespace
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import Health, endpoint, health_of, phase
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.model_list import list_models
from kubefoundry_cli.model_table import pod_state, rows
from kubefoundry_cli.output import age, clean, say
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.start_text import describe_start
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

EXPLAINED: Final = 20
"""Maximum number of models whose reasons are printed below the list."""


@click.command()
@click.argument("name", required=False)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Models of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Go on with a line for each change, until Ctrl-C.")
@output.option(*output.LISTS)
@cluster.options
def command(name: str | None, everywhere: bool, watch: bool, form: str, target: Target) -> None:
    """Show models: phase, provider, endpoint, and why one is not ready. With NAME, all that is known of one.

    STATE is the verdict on the newest edit: Serving, Updating or Starting, or why it does not serve. READY and PHASE
    are about the edit that serves.

    Exit code with NAME: 0 when it is ready, 1 when it is not.
    """
    if watch and form not in ("table", "wide"):
        raise Failure(f"--watch prints lines of a table, not {form}", Exit.USAGE)
    if watch:
        cluster.run(_watch(name, everywhere, form == "wide", target))
    elif name is None:
        _list(everywhere, form, target)
    elif not cluster.run(_show_model(name, form, target)):
        raise SystemExit(1)


def _list(everywhere: bool, form: str, target: Target) -> None:
    _, namespace = cluster.identity(target)
    where = None if everywhere else namespace
    models = list_models(target, where)
    # As with kubectl, a list of a missing namespace is empty and no failure, so that scripts may list before they
    # create it. Unlike kubectl, every form names the namespace on standard error: it may be a typing error.
    is_missing = not models and where is not None and cluster.run(_is_missing(target, where))
    if is_missing:
        say(no_namespace(str(where)))
    if not models and form in ("table", "wide"):
        if is_missing:
            return
        say(
            f"No models in {f'namespace {where}' if where else 'any namespace'}. "
            f"Create one: {hint('deploy MODEL')}, or {kubectl('apply -f FILE', where)}"
        )
    else:
        output.objects(
            models, form, MODEL_DEPLOYMENTS, lambda wide: rows(models, everywhere=everywhere, wide=wide)
        )
        if form == "table":
            _explain(models, everywhere)


async def _is_missing(target: Target, namespace: str) -> bool:
    async with cluster.session(target) as session:
        return await session.is_missing(namespace)


def _explain(models: list[Object], everywhere: bool) -> None:
    """Print a line for each model that does not serve its newest edit or has other trouble."""
    notable = [
        (obj, health) for obj in models if (health := health_of(obj)).severity != "good" and health.reason
    ]
    for obj, health in notable[:EXPLAINED]:
        say(f"{obj['metadata']['namespace']}/{health.text}" if everywhere else health.text)
    if len(notable) > EXPLAINED:
        say(f"and {len(notable) - EXPLAINED} more, which -o wide shows")


async def _watch(name: str | None, everywhere: bool, wide: bool, target: Target) -> None:
    """Print a line for each model, then a line for each change; watch again when a watch ends."""
    selector = {"fieldSelector": f"metadata.name={name}"} if name else None
    lines = _Lines(everywhere, wide)
    async with cluster.session(target) as session:
        namespace = None if everywhere else session.namespace
        while True:
            try:
                await _follow(session, namespace, selector, lines)
            except (ApiError, Unreachable) as error:
                if not (isinstance(error, ApiError) and error.gone):
                    raise of(error, f"watch ModelDeployments in {namespace or 'all namespaces'}") from error


async def _follow(
    session: Session, namespace: str | None, selector: Mapping[str, str] | None, lines: _Lines
) -> None:
    """Show all models, and their changes until the watch ends. Raises Failure, ApiError and Unreachable."""
    models, version = await session.models(namespace, selector)
    if not models and namespace and await session.is_missing(namespace):
        say(no_namespace(namespace))
    lines.begin(models)
    async for event in session.client.watch(
        MODEL_DEPLOYMENTS,
        namespace,
        resource_version=version,
        seconds=300,
        silence=330,
        selector=selector,
    ):
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            lines.show(event["object"], gone=event["type"] == "DELETED")


class _Lines:
    """The lines of a table that grows: one for each change of a model's cells."""

    def __init__(self, everywhere: bool, wide: bool) -> None:
        self._everywhere = everywhere
        self._wide = wide
        self._shown: dict[tuple[str, str], list[str]] = {}
        self._widths: list[int] = []
        self._headed = False

    def begin(self, models: list[Object]) -> None:
        """Show a list of models. The first list sets the widths of the columns."""
        if models and not self._shown:
            head, cells = rows(models, everywhere=self._everywhere, wide=self._wide)
            self._widths = [
                max(map(output.width_of, map(clean, column))) for column in zip(head, *cells, strict=True)
            ]
        for obj in models:
            self.show(obj)

    def show(self, obj: Object, *, gone: bool = False) -> None:
        """Print the model's line if it has changed. gone: whether the model is deleted."""
        head, [row] = rows([obj], everywhere=self._everywhere, wide=self._wide)
        key, stable = (obj["metadata"]["namespace"], obj["metadata"]["name"]), [*row]
        stable[head.index("AGE")] = ""
        if gone:
            self._shown.pop(key, None)
            row[head.index("PHASE")] = "Deleted"
        elif self._shown.get(key) == stable:
            return
        else:
            self._shown[key] = stable
        if not self._headed:
            self._print(head)
            self._headed = True
        self._print(row)

    def _print(self, cells: list[str]) -> None:
        cells = [clean(cell) for cell in cells]
        widths = self._widths or [0] * len(cells)
        self._widths = [max(pair) for pair in zip(widths, map(output.width_of, cells), strict=True)]
        output.row_of(cells, self._widths)


async def _show_model(name: str, form: str, target: Target) -> bool:
    """Print one model, and return whether its newest edit is ready."""
    async with cluster.session(target) as session:
        obj = await session.model(name)
        health = health_of(obj)
        if form in ("json", "yaml"):
            output.data(obj, form)
        elif form == "name":
            print(output.qualified_name({**output.type_of(MODEL_DEPLOYMENTS), **obj}))
        else:
            _describe(obj, health)
            await _pods(session, obj)
    return health.ready


def _describe(obj: Object, health: Health) -> None:
    meta, status = obj["metadata"], obj.get("status") or {}
    provider, replicas = part(status, "provider"), part(status, "replicas")
    lines = [
        ("Model", part(obj, "spec", "model").get("id")),
        ("Phase", phase(obj) or "none yet: core has not reconciled it"),
        ("Message", status.get("message")),
        ("State", f"{health.state}: {health.text}"),
        ("Provider", provider.get("name")),
        ("Chosen", provider.get("selectedReason")),
        ("Upstream", _upstream(provider)),
        (
            "Replicas",
            f"{replicas.get('ready', 0)} of {replicas['desired']} ready" if "desired" in replicas else None,
        ),
        ("Start", describe_start(status.get("start"), datetime.now(UTC))),
        ("Endpoint", endpoint(status)),
        ("Served as", part(status, "endpoint").get("model")),
        ("APIs", ", ".join(map(str, part(status, "endpoint").get("apis") or ()))),
        ("Generation", f"{meta['generation']} (observed {status.get('observedGeneration', 'none')})"),
        ("Age", age(meta.get("creationTimestamp"))),
    ]
    print(f"{meta['namespace']}/{meta['name']}")
    for title, value in lines:
        if value:
            print(f"  {title + ':':<12}{clean(value)}")
    _describe_conditions(status.get("conditions") or [], meta["generation"])


def _describe_conditions(conditions: Sequence[Object], generation: int) -> None:
    if conditions:
        print("  Conditions:")
    for condition in conditions:
        sign = {"True": "✔", "False": "✗"}.get(str(condition.get("status")), "?")
        old = "" if condition.get("observedGeneration") == generation else " (of an earlier generation)"
        detail = f": {condition['message']}" if condition.get("message") else ""
        print(clean(f"  {sign} {condition.get('type')}: {condition.get('reason')}{old}{detail}"))


async def _pods(session: Session, obj: Object) -> None:
    """Print the model's pods. Their labels are known only if the provider's package is installed."""
    from kubefoundry_cli.pods import NotToBeFound, of_model

    try:
        pods = await of_model(session, obj)
    except NotToBeFound as error:
        say(f"cannot show pods: {error}")
        return
    if pods:
        print("  Pods:")
    for pod in pods:
        print(clean(f"  · {pod['metadata']['name']}  {pod_state(pod.get('status') or {})}"))


def _upstream(provider: Mapping[str, Any]) -> str | None:
    kind, name = provider.get("resourceKind"), provider.get("resourceName")
    return f"{kind} '{name}'" if kind and name else None
