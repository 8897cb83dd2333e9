"""Connects watches, queue and polling: decides which change affects which CR."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from importlib.metadata import version

from kubefoundry_llamastack import distribution, names, storage, tool_config_maps
from kubefoundry_llamastack.metrics import ProviderGauges
from kubefoundry_llamastack.names import INSTANCE_LABEL
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_llamastack.observe.services import leads_to_pods
from kubefoundry_llamastack.reconcile import Operator
from kubefoundry_llamastack.render.children import SUFFIXES
from kubefoundry_llamastack.render.request import PORT, Settings
from kubefoundry_llamastack.server_poll import ServerPoll
from kubefoundry_llamastack.stores import watch_all
from kubefoundry_llamastack.workload import RECORD
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key

log = logging.getLogger(__name__)

LABEL = "llamastack"


class Controller:
    """Reconciles LlamaStackDistributions after changes of the objects that they depend on."""

    def __init__(self, process: Process, settings: Settings) -> None:
        self._process = process
        self._stores = watch_all(process, self._enqueue_all)
        self._poll = ServerPoll(self._enqueue)
        self._operator = Operator(
            process.client,
            process.recorder,
            self._stores,
            settings,
            tool_config_maps.current(),
            version("kubefoundry-llamastack"),
            self._poll.answer,
        )
        self._queue = process.queue(LABEL, self._reconcile, of=self._stores.distributions)
        self._followed: dict[tuple[Kind, Key], Key] = {}
        """CR of each object whose labels name it, because a deletion event has no labels."""
        self._subscribe()
        process.export(ProviderGauges(self._counted))
        for name, followed in (
            ("ModelDeployments", self._stores.model_deployments),
            ("LlamaStackDistributions", self._stores.definition),
            ("OGXServers", self._stores.successors),
        ):
            process.background(f"watch of the CRD of {name}", followed.run)
        process.while_leading("questions to servers", self._poll.run)
        process.ready_when(
            lambda: (
                None
                if self._stores.model_deployments.listed
                else "the CRD of ModelDeployments is not checked yet"
            )
        )

    def _counted(self) -> Iterable[Object]:
        """Return the CRs to count. Only the leader counts them, so a sum over replicas counts each one once."""
        return self._stores.distributions.objects() if self._process.leading.is_set() else ()

    async def _reconcile(self, key: Key) -> float | None:
        again = await self._operator.reconcile(key)
        live = self._stores.deployments.get(key)
        self._poll.follow(key, self._server_url(key), pods=repr(counts(live)))
        return again

    def _server_url(self, key: Key) -> str | None:
        """Return the URL of the CR's server while pods serve behind a Service."""
        live = self._stores.distributions.get(key)
        if live is None or not counts(self._stores.deployments.get(key)).enough:
            return None
        service = self._stores.children[names.SERVICES].get((key[0], f"{key[1]}-service"))
        if service is None or not leads_to_pods(service):
            return None
        container = ((live.get("spec") or {}).get("server") or {}).get("containerSpec") or {}
        return f"http://{key[1]}-service.{key[0]}.svc.cluster.local:{container.get('port') or PORT}"

    def _subscribe(self) -> None:
        stores = self._stores
        stores.distributions.subscribe(self._distribution)
        for kind, store in stores.children.items():
            store.subscribe(self._enqueue_owner(SUFFIXES[kind]))
            store.subscribe(self._follow(kind, names.LLSD_LABEL))
        stores.own_config_maps.subscribe(self._own_config_map)
        stores.config_maps.subscribe(self._config_map)
        for kind, store in ((names.PODS, stores.pods), (names.REPLICA_SETS, stores.replica_sets)):
            store.subscribe(self._follow(kind, names.LLSD_LABEL, INSTANCE_LABEL))
        stores.namespaces.subscribe(lambda key, obj: self._namespace(key[1]))
        stores.anyuid.subscribe(lambda key, obj: self._enqueue_all())
        stores.operator_config.subscribe(self._operator_config)
        stores.model_deployments.objects.subscribe(self._model_deployment)
        stores.successors.objects.subscribe(lambda key, obj: self._namespace(key[0]))

    def _distribution(self, key: Key, obj: Object | None) -> None:
        """Enqueue the CR, and others that share a claim with it or did so before."""
        self._queue.add(key)
        # The first list enqueues all of them, and a change of the status alone changes no claim.
        has_changed = obj is None or storage.is_unreported(obj)
        if has_changed and self._stores.distributions.synced.is_set():
            for name in storage.misreported(key[1], obj, self._stores.distributions_in(key[0])):
                self._queue.add((key[0], name))

    def _enqueue(self, key: Key) -> None:
        if self._stores.distributions.get(key) is not None:
            self._queue.add(key)

    def _enqueue_all(self) -> None:
        for key in self._stores.distributions.keys():  # noqa: SIM118 (a Store is no dict)
            self._queue.add(key)

    def _enqueue_owner(self, suffix: str) -> Callable[[Key, Object | None], None]:
        def changed(key: Key, obj: Object | None) -> None:
            if key[1].endswith(suffix):
                self._enqueue((key[0], key[1].removesuffix(suffix)))

        return changed

    def _own_config_map(self, key: Key, obj: Object | None) -> None:
        """Enqueue every CR that the ConfigMap may belong to: the name of a CR may end like such a ConfigMap."""
        name = key[1]
        for cr in (tool_config_maps.cr_of(name), name.removesuffix("-ca-bundle"), name.removesuffix(RECORD)):
            if cr is not None:
                self._enqueue((key[0], cr))

    def _config_map(self, key: Key, obj: Object | None) -> None:
        """Enqueue the CRs of the namespace that name the ConfigMap."""
        for cr_key in self._keys_in(key[0]):
            if key[1] == names.TRUSTED_CA or key[1] in self._config_map_names(cr_key):
                self._queue.add(cr_key)

    def _config_map_names(self, key: Key) -> set[str]:
        live = self._stores.distributions.get(key) or {}
        server = (live.get("spec") or {}).get("server") or {}
        bundle = (server.get("tlsConfig") or {}).get("caBundle")
        return {part.get("configMapName") for part in (server.get("userConfig"), bundle) if part}

    def _keys_in(self, namespace: str) -> list[Key]:
        return self._stores.distributions.indexed_keys(namespace, namespace=namespace)

    def _namespace(self, name: str) -> None:
        for key in self._keys_in(name):
            self._queue.add(key)

    def _model_deployment(self, key: Key, obj: Object | None) -> None:
        for cr_key in self._keys_in(key[0]):
            live = self._stores.distributions.get(cr_key) or {}
            server = (live.get("spec") or {}).get("server") or {}
            if any(item.get("name") == key[1] for item in server.get("modelDeployments") or ()):
                self._queue.add(cr_key)

    def _follow(self, kind: Kind, *labels: str) -> Callable[[Key, Object | None], None]:
        """Return a subscriber that enqueues the CR which the first of the labels names."""

        def changed(key: Key, obj: Object | None) -> None:
            stated = (obj["metadata"].get("labels") or {}) if obj else {}
            place = (kind, key)
            if name := next((stated[label] for label in labels if stated.get(label)), ""):
                self._followed[place] = (key[0], name)
            cr = self._followed.get(place) if obj else self._followed.pop(place, None)
            if cr:
                self._enqueue(cr)

        return changed

    def _operator_config(self, key: Key, obj: Object | None) -> None:
        for problem in distribution.read(obj).problems:
            invalid = logs.values(config_map="/".join(key), problem=problem)
            log.warning("the operator's ConfigMap has an invalid value", extra=invalid)
        self._enqueue_all()


def settings(process: Process) -> Settings:
    """Return the operator's own configuration, from its flags."""
    options = process.options
    return Settings(
        options.provider_size_limit,
        options.init_resources,
        process.namespace,
        options.mirror,
        options.provider_services,
        options.native_sidecars,
    )


def set_up(process: Process) -> None:
    """Connect the operator to the process."""
    Controller(process, settings(process))
