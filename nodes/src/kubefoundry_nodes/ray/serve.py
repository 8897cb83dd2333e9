"""Ray Serve of one RayCluster, simulated: which engine runs on which worker, and what Serve says of its application.

As Ray 2.56 and 2.60 do it (ray/serve/_private/deployment_state.py): an edit of the application's `args` stops one
engine at a time, the old one before its successor loads; an engine that cannot start ends the update, and those of
the previous version go on; a new count alone touches no engine that stays. Ray's own `/v1/models` answers from the
ingress, whatever the engines do; here a model answers only while an engine of it runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LOAD: Final = 5.0
"""Seconds an engine takes to load its model: more than a status may lag behind (life.py)."""

POSITIONS: Final = 32768
"""The longest context of every model here."""


@dataclass(slots=True)
class Engine:
    """One replica of the LLM server. context: its `max_model_len`. since: when it began to load, monotonic."""

    worker: str
    version: str
    context: int
    since: float
    serves: bool = False


@dataclass(slots=True)
class Serve:
    """All of it is lost with the head pod. config: as last submitted, None before that.

    failure: why the last update ended. updating: whether engines of another version are to be replaced.
    """

    config: Mapping[str, Any] | None = None
    engines: list[Engine] = field(default_factory=list)
    failure: str = ""
    updating: bool = False

    def submit(self, config: Mapping[str, Any]) -> None:
        """A new configuration; the same code as before keeps what became of it."""
        before = self._version
        self.config = config
        if self._version != before:
            self.failure, self.updating = "", True

    @property
    def models(self) -> list[dict[str, Any]]:
        """What `/v1/models` lists, as vLLM describes it: by the engine that has served longest; empty without one."""
        name = self._llm["model_loading_config"]["model_id"] if self.config else ""
        return [
            {"id": name, "object": "model", "max_model_len": engine.context}
            for engine in self.engines
            if engine.serves
        ][:1]

    @property
    def wanted(self) -> int:
        """Engines asked for."""
        return int(self._application["deployments"][0]["num_replicas"]) if self.config else 0

    def step(self, now: float, workers: Collection[str]) -> None:
        """What happened until now, with these workers ready."""
        self.engines = [engine for engine in self.engines if engine.worker in workers]
        if self.config is None:
            return
        self._load(now)
        self._stop()
        self._start(now, workers)
        self.updating = self.updating and not self._settled

    def applications(self) -> dict[str, Any]:
        """As `GET /api/serve/applications/` answers."""
        if self.config is None:
            return {}
        name, engines = str(self._application["name"]), str(self._application["deployments"][0]["name"])
        status = self._status
        application = {"HEALTHY": "RUNNING", "DEPLOY_FAILED": "DEPLOY_FAILED"}.get(status, "DEPLOYING")
        said = f"Failed to update the deployments ['{engines}']." if self.failure else ""
        deployments = {
            engines: {"name": engines, "status": status, "message": self.failure},
            "OpenAiIngress": {"name": "OpenAiIngress", "status": "HEALTHY", "message": ""},
        }
        return {name: {"name": name, "status": application, "message": said, "deployments": deployments}}

    @property
    def _status(self) -> str:
        """Of the engines' deployment; one that only scales is not UPDATING (ray/serve/_private/common.py)."""
        if self.failure:
            return "DEPLOY_FAILED"
        if self._settled:
            return "HEALTHY"
        if self.updating:
            return "UPDATING"
        return "DOWNSCALING" if len(self.engines) > self.wanted else "UPSCALING"

    @property
    def _settled(self) -> bool:
        current = [engine for engine in self.engines if engine.serves and engine.version == self._version]
        return len(current) == len(self.engines) == self.wanted

    @property
    def _application(self) -> Mapping[str, Any]:
        assert self.config is not None
        found: Mapping[str, Any] = self.config["applications"][0]
        return found

    @property
    def _llm(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._application["args"]["llm_configs"][0]
        return found

    @property
    def _version(self) -> str:
        """Of the code: everything but the counts under `deployments`."""
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
        """Those too many, those first that do not serve; or one of the previous version when all others serve."""
        surplus = len(self.engines) - self.wanted
        if surplus > 0:
            self.engines = sorted(self.engines, key=lambda engine: not engine.serves)[: self.wanted]
            return
        old = [engine for engine in self.engines if engine.version != self._version]
        settled = surplus == 0 and all(engine.serves for engine in self.engines)
        if old and settled and not self.failure:
            self.engines.remove(old[0])

    def _start(self, now: float, workers: Collection[str]) -> None:
        taken = {engine.worker for engine in self.engines}
        context = self._llm["engine_kwargs"].get("max_model_len", POSITIONS)
        for worker in sorted(set(workers) - taken):
            if len(self.engines) < self.wanted and not self.failure:
                self.engines.append(Engine(worker, self._version, context, now))
