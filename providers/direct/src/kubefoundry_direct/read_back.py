"""From a Deployment that serves a model to the spec of a ModelDeployment: `render` in reverse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_direct.engines.known import ENGINES
from kubefoundry_direct.names import CONTAINER, OPTIONS_ANNOTATION, SELECTED_BY
from kubefoundry_direct.overrides import CLUSTER, Cluster
from kubefoundry_direct.pod import ENDING, ENVIRONMENT, OWN_VOLUMES, security_context
from kubefoundry_direct.probes import STARTING
from kubefoundry_sdk import NotReadable, Object
from kubefoundry_sdk import read_back as common
from kubefoundry_sdk.status import part

OF_OVERRIDES: Final = ("imagePullSecrets", "runtimeClassName", "terminationGracePeriodSeconds")
"""Fields of a pod that `provider.overrides` renders."""


def read_back(deployment: Object, helpers: Sequence[Object]) -> list[Object]:
    """Return a spec for each engine that the Deployment may run. Raise NotReadable if its pods lack our container."""
    content = part(deployment, "spec")
    template = part(content, "template")
    pod = part(template, "spec")
    containers = [
        candidate for candidate in pod.get("containers") or () if part(candidate).get("name") == CONTAINER
    ]
    if len(containers) != 1:
        raise NotReadable(f"its pods have no container '{CONTAINER}'")
    [container] = containers
    metadata = {
        key: dict(values) for key, values in part(template, "metadata").items() if isinstance(values, dict)
    }
    metadata.get("labels", {}).pop(SELECTED_BY, None)
    options = metadata.get("annotations", {}).pop(OPTIONS_ANNOTATION, None)
    rest = {
        **common.pod_fields(_with_own_variables(container), _without_overrides(pod), metadata, OWN_VOLUMES),
        "resources": common.amounts(container.get("resources")),
        "scaling": {"replicas": content.get("replicas", 1)},
        "provider": {"overrides": _overrides(content, pod, container)},
    }
    command = tuple(container.get("command") or ())
    engines = [name for name, engine in ENGINES.items() if engine.command and engine.command == command]
    if command and not engines:
        rest["provider"]["overrides"]["command"] = list(command)
    # an image may start its server itself: llama.cpp's does
    return [{**_model(name, container, options), **rest} for name in engines or ENGINES]


def _model(engine: str, container: Any, options: str | None) -> Object:
    words = [str(word) for word in container.get("args") or ()]
    stated = common.flags(words)
    # an option of trtllm-serve has underscores in `args`
    with_dashes = {name for name in stated if "-" in name} if engine == "trtllm" else set()
    if engine == "trtllm":
        stated = {name: value for name, value in stated.items() if name not in with_dashes}
        stated = {name.replace("_", "-"): value for name, value in stated.items() if name != "config"}
    if engine in ("vllm", "trtllm") and words and not words[0].startswith("-"):
        stated["model"] = words[0]
    if engine == "llamacpp" and (file := stated.pop("hf-file", None)):
        stated["hf-repo"] = f"{stated.get('hf-repo')}/{file}"
    spec = common.from_flags(engine, stated)
    if extra := common.extra(words, with_dashes):
        spec["engine"]["extraArgs"] = extra
    if engine == "trtllm" and stated.get("trust-remote-code") == "":
        spec["engine"]["trustRemoteCode"] = True
        spec["engine"].get("args", {}).pop("trust-remote-code", None)
    if options:
        try:
            more = {name: common.text(value) for name, value in part(json.loads(options)).items()}
        except ValueError as error:
            raise NotReadable(f"its annotation {OPTIONS_ANNOTATION} is not JSON") from error
        spec["engine"]["args"] = {**spec["engine"].get("args", {}), **more}
    return spec


def _with_own_variables(container: Any) -> Object:
    """Return the container without the variables that we always set."""
    own = [
        variable
        for variable in container.get("env") or ()
        if (variable.get("name"), variable.get("value")) not in ENVIRONMENT.items()
    ]
    return {**container, "env": own}


def _without_overrides(pod: Any) -> Object:
    """Return the spec of a pod without the fields that overrides render."""
    context = {name: value for name, value in part(pod, "securityContext").items() if name != "runAsUser"}
    user = _user(pod)
    ours = {} if user is None else security_context(user)
    rest = {name: value for name, value in context.items() if ours.get(name) != value}
    left = {name: value for name, value in pod.items() if name not in OF_OVERRIDES}
    return {**left, "securityContext": rest}


def _overrides(content: Any, pod: Any, container: Any) -> Object:
    volumes = {volume.get("name"): volume for volume in pod.get("volumes") or ()}
    grace = pod.get("terminationGracePeriodSeconds")
    starting = part(container, "startupProbe").get("failureThreshold")
    surge = part(content, "strategy", "rollingUpdate").get("maxSurge")
    secrets = [part(secret).get("name") for secret in pod.get("imagePullSecrets") or ()]
    stated = {
        "rollout": None if surge is None else ("replace" if surge in (0, "0") else "surge"),
        "cacheClaim": part(volumes.get("cache"), "persistentVolumeClaim").get("claimName"),
        "sharedMemory": part(volumes.get("shared-memory"), "emptyDir").get("sizeLimit"),
        "drainSeconds": grace - ENDING if isinstance(grace, int) and grace >= ENDING else None,
        "startupSeconds": starting * STARTING if isinstance(starting, int) else None,
        "runAsUser": _user(pod),
        "imagePullSecrets": secrets or None,
        "runtimeClassName": pod.get("runtimeClassName"),
    }
    return {name: value for name, value in stated.items() if value is not None}


def _user(pod: Any) -> int | Cluster | None:
    """Return the override `runAsUser` of a pod, None if it needs none."""
    context = part(pod, "securityContext")
    user = context.get("runAsUser")
    if user is None and context.get("runAsNonRoot") is True:
        return CLUSTER
    return user if isinstance(user, int) else None
