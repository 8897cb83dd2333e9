"""`run`: a provider as a process. A provider's console script has nothing else to call."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import HELPER_KINDS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.flags import started_with
from kubefoundry_sdk.provider.health import completion
from kubefoundry_sdk.provider.health.models_endpoint import directly, through_server
from kubefoundry_sdk.provider.health.staleness import THRESHOLD
from kubefoundry_sdk.provider.health.verification import ANSWER, Verification
from kubefoundry_sdk.provider.reconcile import finalizer
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.reconciler import reconcile
from kubefoundry_sdk.provider.registration import Registration
from kubefoundry_sdk.provider.watch.pod_creation import CreationWatch
from kubefoundry_sdk.provider.watch.pods import PodWatch
from kubefoundry_sdk.provider.watch.upstream import Upstream
from kubefoundry_sdk.provider.watch.upstream_operator import OperatorWatch
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.helpers import Helpers
from kubefoundry_sdk.runtime import options, process
from kubefoundry_sdk.runtime.paced_queue import PacedQueue
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Key


def run(
    name: str,
    build: Callable[[argparse.Namespace], Provider],
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the provider as `kubefoundry-provider-NAME` and return the exit code.

    build: the parsed flags -> the provider. `default_images` maps engines to images (`--default-image`). If it raises
        ValueError, the process exits with the error's text as its one-line message.
    """
    flags = parser(name)
    if add_arguments:
        add_arguments(flags)
    parsed = flags.parse_args(arguments)
    try:
        built = replace(build(parsed), flags=started_with(parsed, parser(name).parse_args([])))
        provider = placed(built, parsed.operator_namespace, parsed.operator_deployment)
    except ValueError as error:
        flags.error(str(error))
    return process.run(flags.prog, parsed, lambda running: set_up(running, provider))


def parser(name: str) -> argparse.ArgumentParser:
    """The flags of every provider (contract §6)."""
    made = options.parser(f"kubefoundry-provider-{name}", f"Deploys ModelDeployments on {name}.")
    options.finalizer_timeout(made)
    options.heartbeat_timeout(made)
    options.flag(
        made,
        "--stale-after",
        "seconds without a reaction of the upstream operator after which a status counts as stale",
        default=THRESHOLD,
        read=options.seconds,
    )
    options.flag(
        made,
        "--default-image",
        "ENGINE=IMAGE for ModelDeployments that name no image; separate several with commas",
        default="",
        read=images,
        action=_Merge,
        dest="default_images",
    )
    options.flag(
        made,
        "--verify-endpoint",
        "report a model as Running only once GET /v1/models on its endpoint lists it: true, false, or answer, "
        "which also requests one token",
        default="false",
        read=_verification,
        nargs="?",
        const="true",
    )
    options.flag(
        made,
        "--operator-namespace",
        "namespaces of the upstream operator, separated by commas; default: the namespace in its documentation",
        default="",
    )
    options.flag(
        made,
        "--operator-deployment",
        "name of the upstream operator's Deployment; default: the name in its documentation",
        default="",
    )
    return made


class _Merge(argparse.Action):
    """Each occurrence adds to the map; later ones win."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        # argparse parses a default that is a string only after the flags
        known = images(before) if isinstance(before, str) else before
        setattr(namespace, self.dest, {**known, **values})


def placed(provider: Provider, namespaces: str, deployment: str) -> Provider:
    """The provider with the upstream operator where an administrator says it is; empty: where it is documented."""
    operator = provider.operator
    if operator is None:
        return provider
    named = tuple(filter(None, namespaces.split(","))) or operator.namespaces
    placed = replace(operator, namespaces=named, deployment=deployment or operator.deployment)
    return replace(provider, operator=placed)


def _verification(text: str) -> str:
    """`true`, `false` or `answer`. Raises ArgumentTypeError for anything else."""
    return ANSWER if text == ANSWER else str(options.boolean(text)).lower()


def images(text: str) -> dict[str, str]:
    """`vllm=repo/image:tag,sglang=…`. Raises ArgumentTypeError for anything else."""
    found = {}
    for pair in filter(None, text.split(",")):
        engine, separator, image = pair.partition("=")
        if not (engine and separator and image):
            raise argparse.ArgumentTypeError(f"{pair!r} is not ENGINE=IMAGE")
        found[engine] = image
    return found


def set_up(running: Process, provider: Provider) -> None:
    """Wires a provider's watches, queue and registration."""
    manager = names.provider_manager(provider.name)
    deployments = running.watch(
        MODEL_DEPLOYMENTS, managers=frozenset({manager}), trim=lambda obj: trim(obj, provider.name)
    )
    helpers = Helpers(
        {
            kind: running.watch(
                HELPER_KINDS[kind],
                selector=manifest.selector(provider.name),
                managers=frozenset({manager}),
                index=manifest.owner_uid,
            )
            for kind in provider.helper_kinds
        }
    )

    def upstream_changed() -> None:
        registration.poke()
        for key in deployments.keys():  # noqa: SIM118 (a Store is no dict)
            queue.add(key)

    owners: dict[tuple[Kind, Key], str] = {}

    def helper_changed(kind: Kind, key: Key, obj: Object | None) -> None:
        # An object that was deleted, or lost its owner or the labels we watch, concerns its previous owner.
        owner, before = manifest.owner_name(obj) if obj else None, owners.pop((kind, key), None)
        if owner:
            owners[kind, key] = owner
        for name in filter(None, {owner, before}):
            queue.add((key[0], name))

    upstream = Upstream(running, provider, manager, upstream_changed)

    def operator_changed() -> None:
        registration.poke()
        news.add(upstream.objects.keys())

    news = PacedQueue(lambda key: queue.add(key))
    operator = None
    if provider.operator:
        operator = OperatorWatch(
            running.client,
            provider.operator,
            upstream.settings,
            operator_changed,
            clock=running.sight.now,
        )
        running.background("watch of the upstream operator", operator.run)
        running.while_leading("news", news.run)
    registration = Registration(
        running.client, provider, upstream, operator, interval=running.options.heartbeat_timeout / 3
    )
    pods = PodWatch(provider.pods, lambda key: queue.add(key)) if provider.pods else None
    inside = credentials.inside(running.options.kubeconfig)
    creations = None
    if provider.pods and provider.pods.creation_events:
        creations = CreationWatch(provider.pods, lambda key: queue.add(key))
    context = Context(
        provider,
        running.client,
        running.recorder,
        deployments,
        upstream,
        helpers,
        running.options.finalizer_timeout,
        pods,
        Verification(
            directly(running.client) if inside else through_server(running.client),
            lambda ask: running.background("endpoint verification", ask),
            lambda key: queue.add(key),
            always=running.options.verify_endpoint != "false",
            attempt=completion.directly(running.client)
            if inside
            else completion.through_server(running.client),
            answers=running.options.verify_endpoint == ANSWER,
        ),
        clock=running.sight.now,
        stale_after=running.options.stale_after,
        operator=operator,
        creations=creations,
    )

    async def turn(key: Key) -> float | None:
        if pods is not None:
            await pods.first_look()
        return await reconcile(context, key)

    queue = running.queue(provider.name, turn, of=deployments)
    deployments.subscribe(lambda key, obj: queue.add(key))
    # The upstream object has its ModelDeployment's name, so the keys are equal.
    upstream.objects.subscribe(lambda key, obj: queue.add(key))
    for kind, store in helpers:
        store.subscribe(partial(helper_changed, kind))
    if pods is not None:
        upstream.objects.subscribe(pods.upstream_changed)
        running.background("watch of pods", lambda: pods.run(running))
    if creations is not None:
        upstream.objects.subscribe(creations.upstream_changed)
        running.background("watch of refused pods", lambda: creations.run(running))
    running.background("watch of the upstream CRD", upstream.run)
    running.while_leading("registration", registration.run)
    running.ready_when(lambda: None if upstream.listed else f"CRD {provider.upstream.crd} not checked yet")


_TOLD: Final = ("name", "namespace", "uid", "generation", "deletionTimestamp")


def trim(obj: Object, provider: str) -> Object:
    """Of other providers' ModelDeployments, keep only what shows that they belong to others."""
    named = ((obj.get("status") or {}).get("provider") or {}).get("name")
    meta = obj["metadata"]
    ours = any(
        entry.get("manager") == names.provider_manager(provider) for entry in meta.get("managedFields", ())
    )
    if named == provider or ours or finalizer.has(obj, provider):
        return obj
    return {
        "metadata": {key: meta[key] for key in _TOLD if key in meta},
        "status": {"provider": {"name": named}} if named else {},
    }
