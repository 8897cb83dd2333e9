"""Wires watches, queue and polling: which change affects which CR."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version

from kubefoundry_llamastack import distribution, names, stores, tool_config_maps
from kubefoundry_llamastack.names import INSTANCE_LABEL
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_llamastack.reconcile import Operator
from kubefoundry_llamastack.render.children import OPTIONAL
from kubefoundry_llamastack.render.request import PORT, Settings
from kubefoundry_llamastack.server_poll import ServerPoll
from kubefoundry_llamastack.workload import RECORD
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Key

log = logging.getLogger(__name__)

SUFFIXES: dict[Kind, str] = {
    names.DEPLOYMENTS: "",
    names.SERVICE_ACCOUNTS: "-sa",
    names.ROLE_BINDINGS: "-rb",
    names.CLAIMS: "-pvc",
    **dict(OPTIONAL),
}
"""The suffixes of children's names after the CR's."""

LABEL = "llamastack"


class Controller:
    def __init__(self, process: Process, settings: Settings) -> None:
        self._process = process
        self._known = known = stores.follow(process, self._all)
        self._poll = ServerPoll(self._add)
        self._operator = Operator(
            process.client,
            process.recorder,
            known,
            settings,
            tool_config_maps.current(),
            version("kubefoundry-llamastack"),
            self._poll.answer,
        )
        self._queue = process.queue(LABEL, self._turn, of=known.distributions)
        self._pods: dict[Key, Key] = {}
        """CR of each pod and ReplicaSet, because one that is gone tells no labels."""
        self._subscribe()
        for name, followed in (
            ("ModelDeployments", known.model_deployments),
            ("LlamaStackDistributions", known.definition),
        ):
            process.background(f"watch of the CRD of {name}", followed.run)
        process.while_leading("questions to servers", self._poll.run)
        process.ready_when(
            lambda: (
                None if known.model_deployments.listed else "the CRD of ModelDeployments is not checked yet"
            )
        )

    async def _turn(self, key: Key) -> float | None:
        again = await self._operator.reconcile(key)
        live = self._known.deployments.get(key)
        self._poll.follow(key, self._served(key), pods=repr(counts(live)))
        return again

    def _served(self, key: Key) -> str | None:
        """URL of the CR's server while pods serve behind a Service."""
        live = self._known.distributions.get(key)
        if live is None or not counts(self._known.deployments.get(key)).enough:
            return None
        service = self._known.children[names.SERVICES].get((key[0], f"{key[1]}-service"))
        if service is None or not leads_to_pods(service):
            return None
        container = ((live.get("spec") or {}).get("server") or {}).get("containerSpec") or {}
        return f"http://{key[1]}-service.{key[0]}.svc.cluster.local:{container.get('port') or PORT}"

    def _subscribe(self) -> None:
        known = self._known
        known.distributions.subscribe(lambda key, obj: self._queue.add(key))
        for kind, store in known.children.items():
            store.subscribe(self._child(SUFFIXES[kind]))
        known.own_config_maps.subscribe(self._own_config_map)
        known.config_maps.subscribe(self._config_map)
        known.pods.subscribe(self._pod)
        known.replica_sets.subscribe(self._pod)
        known.namespaces.subscribe(lambda key, obj: self._namespace(key[1]))
        known.anyuid.subscribe(lambda key, obj: self._all())
        known.operator_config.subscribe(self._operator_config)
        known.model_deployments.objects.subscribe(self._model_deployment)

    def _add(self, key: Key) -> None:
        if self._known.distributions.get(key) is not None:
            self._queue.add(key)

    def _all(self) -> None:
        for key in self._known.distributions.keys():  # noqa: SIM118 (a Store is no dict)
            self._queue.add(key)

    def _child(self, suffix: str) -> Callable[[Key, Object | None], None]:
        def changed(key: Key, obj: Object | None) -> None:
            if key[1].endswith(suffix):
                self._add((key[0], key[1].removesuffix(suffix)))

        return changed

    def _own_config_map(self, key: Key, obj: Object | None) -> None:
        """A CR's name may look like another CR's ConfigMap, so every CR that it may belong to is checked."""
        name = key[1]
        for cr in (tool_config_maps.cr_of(name), name.removesuffix("-ca-bundle"), name.removesuffix(RECORD)):
            if cr is not None:
                self._add((key[0], cr))

    def _config_map(self, key: Key, obj: Object | None) -> None:
        """Any ConfigMap affects the CRs of its namespace that name it."""
        for other in self._in(key[0]):
            if key[1] == names.TRUSTED_CA or key[1] in self._named(other):
                self._queue.add(other)

    def _named(self, key: Key) -> set[str]:
        live = self._known.distributions.get(key) or {}
        server = (live.get("spec") or {}).get("server") or {}
        bundle = (server.get("tlsConfig") or {}).get("caBundle")
        return {part.get("configMapName") for part in (server.get("userConfig"), bundle) if part}

    def _in(self, namespace: str) -> list[Key]:
        return [key for key in self._known.distributions.keys() if key[0] == namespace]  # noqa: SIM118

    def _namespace(self, name: str) -> None:
        for key in self._in(name):
            self._queue.add(key)

    def _model_deployment(self, key: Key, obj: Object | None) -> None:
        for other in self._in(key[0]):
            live = self._known.distributions.get(other) or {}
            server = (live.get("spec") or {}).get("server") or {}
            if any(item.get("name") == key[1] for item in server.get("modelDeployments") or ()):
                self._queue.add(other)

    def _pod(self, key: Key, obj: Object | None) -> None:
        name = (obj["metadata"].get("labels") or {}).get(INSTANCE_LABEL) if obj else None
        if name:
            self._pods[key] = (key[0], name)
        cr = self._pods.get(key) if obj else self._pods.pop(key, None)
        if cr:
            self._add(cr)

    def _operator_config(self, key: Key, obj: Object | None) -> None:
        for problem in distribution.read(obj).problems:
            log.warning("ConfigMap %s/%s: %s", *key, problem)
        self._all()


def settings(process: Process) -> Settings:
    """The operator's own configuration, from its flags."""
    options = process.options
    return Settings(options.provider_size_limit, options.init_resources, process.namespace)


def set_up(process: Process) -> None:
    """Wires the operator to the process."""
    Controller(process, settings(process))


def leads_to_pods(service: Object) -> bool:
    """Whether it is as the operator wrote it. If a tenant changed it, it may lead anywhere until it is corrected."""
    spec = service.get("spec") or {}
    return spec.get("type") != "ExternalName" and bool(spec.get("selector"))
