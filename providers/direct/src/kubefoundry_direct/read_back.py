"""From a Deployment that serves a model to the spec of a ModelDeployment: `render` in reverse."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_direct.engines.known import ENGINES
from kubefoundry_direct.names import CONTAINER, OPTIONS_ANNOTATION, SELECTED_BY
from kubefoundry_direct.overrides import CLUSTER, Cluster, Rollout
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
    container = _engine_container(pod)
    metadata, options = _metadata(template)
    rest = {
        **common.pod_fields(_with_own_variables(container), _without_overrides(pod), metadata, OWN_VOLUMES),
        "resources": common.amounts(container.get("resources")),
        "scaling": {"replicas": content.get("replicas", 1)},
        "provider": {"overrides": _overrides(content, pod, container)},
    }
    grace, drain = pod.get("terminationGracePeriodSeconds"), _drain_seconds(container)
    if drain is not None and isinstance(grace, int) and grace != drain + ENDING:
        template = rest.setdefault("podTemplate", {})
        template.setdefault("spec", {})["terminationGracePeriodSeconds"] = grace
    command = tuple(container.get("command") or ())
    engines = [name for name, engine in ENGINES.items() if engine.command and engine.command == command]
    if command and not engines:
        rest["provider"]["overrides"]["command"] = list(command)
    # an image may start its server itself: llama.cpp's does
    return [{**_model(name, container, options), **rest} for name in engines or ENGINES]


def _engine_container(pod: Any) -> Object:
    containers: list[Object] = [
        container for container in pod.get("containers") or () if part(container).get("name") == CONTAINER
    ]
    if len(containers) != 1:
        raise NotReadable(f"its pods have no container '{CONTAINER}'")
    return containers[0]


def _metadata(template: Any) -> tuple[Object, str | None]:
    """Return the metadata of the pods without our label, and the options of the engine's file, as JSON."""
    metadata = {
        key: dict(values) for key, values in part(template, "metadata").items() if isinstance(values, dict)
    }
    metadata.get("labels", {}).pop(SELECTED_BY, None)
    return metadata, metadata.get("annotations", {}).pop(OPTIONS_ANNOTATION, None)


def _model(engine: str, container: Object, file_options: str | None) -> Object:
    """Return `model` and `engine` of the spec."""
    words = [str(word) for word in container.get("args") or ()]
    options = _options(engine, words)
    spec = common.from_flags(engine, options)
    # trtllm-serve's own options have underscores in `args`
    with_dashes = {name for name in common.flags(words) if "-" in name} if engine == "trtllm" else ()
    if extra := common.extra(words, with_dashes):
        spec["engine"]["extraArgs"] = extra
    if engine == "trtllm" and options.get("trust-remote-code") == "":
        spec["engine"]["trustRemoteCode"] = True
        del spec["engine"]["args"]["trust-remote-code"]
    if file_options:
        spec["engine"]["args"] = {**spec["engine"].get("args", {}), **_decode_options(file_options)}
    return spec


def _options(engine: str, words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line by their names in `engine.args`, with the model as an option."""
    options = common.flags(words)
    if engine == "trtllm":
        options = {
            name.replace("_", "-"): value
            for name, value in options.items()
            if "-" not in name and name != "config"
        }
    if engine in ("vllm", "trtllm") and words and not words[0].startswith("-"):
        options["model"] = words[0]
    if engine == "llamacpp" and (file := options.pop("hf-file", None)):
        options["hf-repo"] = f"{options.get('hf-repo')}/{file}"
    return options


def _decode_options(file_options: str) -> dict[str, str]:
    try:
        return {name: common.text(value) for name, value in part(json.loads(file_options)).items()}
    except ValueError as error:
        raise NotReadable(f"its annotation {OPTIONS_ANNOTATION} is not JSON") from error


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
    failures = part(container, "startupProbe").get("failureThreshold")
    overrides = {
        "rollout": _rollout(part(content, "strategy", "rollingUpdate").get("maxSurge")),
        "cacheClaim": part(volumes.get("cache"), "persistentVolumeClaim").get("claimName"),
        "sharedMemory": part(volumes.get("shared-memory"), "emptyDir").get("sizeLimit"),
        "drainSeconds": _drain_seconds(container),
        "startupSeconds": failures * STARTING if isinstance(failures, int) else None,
        "runAsUser": _user(pod),
        "imagePullSecrets": [part(secret).get("name") for secret in pod.get("imagePullSecrets") or ()],
        "runtimeClassName": pod.get("runtimeClassName"),
    }
    return {name: value for name, value in overrides.items() if value not in (None, [])}


def _rollout(surge: Any) -> Rollout | None:
    if surge is None:
        return None
    return "replace" if surge in (0, "0") else "surge"


def _drain_seconds(container: Any) -> int | None:
    """Return the seconds that a container sleeps before it is stopped, None if it does something else then."""
    hook = part(container, "lifecycle", "preStop")
    match part(hook, "exec").get("command"):
        case ["sleep", str(seconds)] if re.fullmatch("[0-9]{1,4}", seconds):
            return int(seconds)
    return None if hook else 0


def _user(pod: Any) -> int | Cluster | None:
    """Return the override `runAsUser` of a pod, None if it needs none."""
    context = part(pod, "securityContext")
    user = context.get("runAsUser")
    if user is None and context.get("runAsNonRoot") is True:
        return CLUSTER
    return user if isinstance(user, int) else None
