"""Simulate Ray Serve of one RayCluster: the engines on its workers, and the status of its application.

It follows Ray 2.56 and 2.60 (ray/serve/_private/deployment_state.py). An edit of the application's `args` replaces
one engine at a time, and stops the old one before its successor loads. An engine that cannot start ends the update,
and the engines of the previous version continue. A new count alone affects no engine that stays. Ray's own
`/v1/models` answers from the ingress, whatever the engines do. Here a model answers only while one of its engines
runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LOAD: Final = 5.0
"""Seconds an engine takes to load its model: longer than a status may lag behind (life.py)."""

POSITIONS: Final = 32768
"""The longest context of every model here."""


@dataclass(slots=True)
class Engine:
    """A replica of the LLM server. `context` is its `max_model_len`, `since` the monotonic time of its start."""

    worker: str
    version: str
    context: int
    since: float
    serves: bool = False


@dataclass(slots=True)
class Serve:
    """The state of Ray Serve, which is lost with the head pod.

    Attributes:
        config: The last submitted configuration, None before the first one.
        engines: The engines.
        failure: The reason why the last update ended, empty if it did not fail.
        updating: Whether engines of another version must be replaced.
    """

    config: Mapping[str, Any] | None = None
    engines: list[Engine] = field(default_factory=list)
    failure: str = ""
    updating: bool = False

    def submit(self, config: Mapping[str, Any]) -> None:
        """Take a new configuration. If its code is unchanged, the outcome of the last update stays."""
        before = self._version
        self.config = config
        if self._version != before:
            self.failure, self.updating = "", True

    @property
    def models(self) -> list[dict[str, Any]]:
        """The models of `/v1/models` in vLLM's form, by the longest serving engine; empty without an engine."""
        name = self._llm["model_loading_config"]["model_id"] if self.config else ""
        return [
            {"id": name, "object": "model", "max_model_len": engine.context}
            for engine in self.engines
            if engine.serves
        ][:1]

    @property
    def requested(self) -> int:
        """The requested number of engines."""
        return int(self._application["deployments"][0]["num_replicas"]) if self.config else 0

    def step(self, now: float, workers: Collection[str]) -> None:
        """Advance the simulation to `now` with these ready workers."""
        self.engines = [engine for engine in self.engines if engine.worker in workers]
        if self.config is None:
            return
        self._load(now)
        self._stop()
        self._start(now, workers)
        self.updating = self.updating and not self._settled

    def applications(self) -> dict[str, Any]:
        """Return the response of `GET /api/serve/applications/`."""
        if self.config is None:
            return {}
        name, engines = str(self._application["name"]), str(self._application["deployments"][0]["name"])
        status = self._status
        application = {"HEALTHY": "RUNNING", "DEPLOY_FAILED": "DEPLOY_FAILED"}.get(status, "DEPLOYING")
        message = f"Failed to update the deployments ['{engines}']." if self.failure else ""
        deployments = {
            engines: {"name": engines, "status": status, "message": self.failure},
            "OpenAiIngress": {"name": "OpenAiIngress", "status": "HEALTHY", "message": ""},
        }
        return {name: {"name": name, "status": application, "message": message, "deployments": deployments}}

    @property
    def _status(self) -> str:
        """The status of the engines' deployment. Scaling alone is not UPDATING (ray/serve/_private/common.py)."""
        if self.failure:
            return "DEPLOY_FAILED"
        if self._settled:
            return "HEALTHY"
        if self.updating:
            return "UPDATING"
        return "DOWNSCALING" if len(self.engines) > self.requested else "UPSCALING"

    @property
    def _settled(self) -> bool:
        current = [engine for engine in self.engines if engine.serves and engine.version == self._version]
        return len(current) == len(self.engines) == self.requested

    @property
    def _application(self) -> Mapping[str, Any]:
        assert self.config is not None
        application: Mapping[str, Any] = self.config["applications"][0]
        return application

    @property
    def _llm(self) -> Mapping[str, Any]:
        llm_config: Mapping[str, Any] = self._application["args"]["llm_configs"][0]
        return llm_config

    @property
    def _version(self) -> str:
        """A digest of the code: the configuration without the counts under `deployments`."""
        if self.config is None:
            return ""
        code = [self._application["import_path"], self._application["args"]]
        return hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()

    def _load(self, now: float) -> None:
        for engine in [engine for engine in self.engines if not engine.serves and now - engine.since >= LOAD]:
            if engine.context <= POSITIONS:
                engine.serves = True
                continue
            self.engines.remove(engine)
            self.failure = (
                f"ValueError: User-specified max_model_len ({engine.context}) is greater than the derived "
                f"max_model_len (max_position_embeddings={POSITIONS})"
            )

    def _stop(self) -> None:
        """Stop surplus engines, first those that do not serve; else one old engine once all others serve."""
        surplus = len(self.engines) - self.requested
        if surplus > 0:
            self.engines = sorted(self.engines, key=lambda engine: not engine.serves)[: self.requested]
            return
        old = [engine for engine in self.engines if engine.version != self._version]
        settled = surplus == 0 and all(engine.serves for engine in self.engines)
        if old and settled and not self.failure:
            self.engines.remove(old[0])

    def _start(self, now: float, workers: Collection[str]) -> None:
        busy = {engine.worker for engine in self.engines}
        context = self._llm["engine_kwargs"].get("max_model_len", POSITIONS)
        for worker in sorted(set(workers) - busy):
            if len(self.engines) < self.requested and not self.failure:
                self.engines.append(Engine(worker, self._version, context, now))
