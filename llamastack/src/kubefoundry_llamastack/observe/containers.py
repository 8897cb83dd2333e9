"""Interprets the status of one container, and suggests a remedy (FR-028 to FR-030)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_llamastack.api.status import ProviderPhase
from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.untrusted import mapping

LIMIT: Final = 4096
"""Bytes of a message that are passed on, as many as a container may leave."""


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """The interpreted status of a container.

    Attributes:
        phase: Its progress.
        reason: Reason of DeploymentReady, empty if nothing failed.
        message: Text for users.
        is_self_reported: Whether the container itself reported the cause.
        image_id: The image that runs, as the kubelet reports it.
        package: The installed package, empty for other containers.
        version: The package's version.
        provider_type: The type in the image's metadata.
    """

    phase: ProviderPhase
    reason: str = ""
    message: str = ""
    is_self_reported: bool = False
    image_id: str = ""
    package: str = ""
    version: str = ""
    provider_type: str = ""


def status_of(pod: Mapping[str, Any], container: str) -> Mapping[str, Any] | None:
    """Return the container's status, init containers included. None if the pod has none yet."""
    return statuses(pod).get(container)


def statuses(pod: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return all statuses by container. A pod has an init container for each provider."""
    return {str(item.get("name")): item for item in pod_status.containers(pod.get("status") or {})}


@dataclass(frozen=True, slots=True)
class ContainerRole:
    """The role of a container in its pod.

    Attributes:
        image: Its image.
        image_label: The image's name in messages.
        serves: Whether it should run forever.
        confidential: Whether its output may repeat a Secret, and is passed on only if the tool wrote it.
        namespace: The pod's namespace, for the command that shows the log.
        pod: The pod's name, for the same command.
        has_command: Whether the CR sets its command or arguments.
        suspects: The external providers that run in its process.
    """

    image: str
    image_label: str
    serves: bool = False
    confidential: bool = False
    namespace: str = "NAMESPACE"
    pod: str = "POD"
    has_command: bool = False
    suspects: tuple[str, ...] = ()


def read(status: Mapping[str, Any] | None, role: ContainerRole) -> ContainerReport:
    """Interpret the container's status.

    A failed container keeps reporting its last run until it recovers: a server when it serves again, others
    when they have completed. Between two runs it waits, starts and runs for a moment. A status that followed
    each step would change several times a minute.
    """
    status = status or {}
    image_id = str(status.get("imageID") or "")
    end = pod_status.ended(status)
    reason, text = pod_status.waiting(status) or ("", "")
    if reason in pod_status.PULL:
        detail = _pull(role.image_label, role.image, reason, text)
        return ContainerReport("Failed", "ImagePullFailed", detail, image_id=image_id)
    if reason in pod_status.CONFIGURATION:
        return ContainerReport("Failed", "ContainerConfigInvalid", _config(reason, text), image_id=image_id)
    if _has_failed(status, end, role):
        return _ended(end, role, image_id, str(status.get("name")))
    if pod_status.running(status) is not None:
        return ContainerReport("Installing", message="Running", image_id=image_id)
    if mapping(status.get("state")).get("terminated"):
        facts = _facts(str(end.get("message") or ""))
        return ContainerReport(
            "Ready",
            message=facts.get("warnings", ""),
            image_id=image_id,
            package=facts.get("package", ""),
            version=facts.get("version", ""),
            provider_type=facts.get("providerType", ""),
        )
    return ContainerReport(
        "Pending", message=reason or "Waiting for the container to start", image_id=image_id
    )


def _has_failed(status: Mapping[str, Any], end: Mapping[str, Any], role: ContainerRole) -> bool:
    """Check whether the last run failed and the container has not recovered. A server must not exit at all."""
    is_ready = pod_status.running(status) is not None and status.get("ready")
    if not end or is_ready or not mapping(status.get("state")):
        return False
    return role.serves or bool(end.get("exitCode"))


def _ended(ended: Mapping[str, Any], role: ContainerRole, image_id: str, container: str) -> ContainerReport:
    """Report a failed run. The container's own words take precedence over guesses."""
    text = str(ended.get("message") or "").strip()
    code, reason = ended.get("exitCode"), str(ended.get("reason") or "")
    own = is_ours(text)
    hint = _hint(text, code, role, container)
    if role.confidential and not own:
        text = ""
    if reason == pod_status.OUT_OF_MEMORY:
        message_args = (
            "The container was killed because it used more memory than its limit.\n"
            "Resolution: Raise the memory limit (containerSpec.resources of the server; --init-resources of the "
            "operator for the init containers)."
        )
        return ContainerReport(
            "Failed",
            "OutOfMemory",
            f"{message_args}\n{text}".strip(),
            is_self_reported=own,
            image_id=image_id,
        )
    if own:
        return ContainerReport("Failed", "CrashLoop", text[:LIMIT], is_self_reported=True, image_id=image_id)
    message_args = f"The container ended with exit code {code}" + (f": {text}" if text else ".")
    return ContainerReport(
        "Failed", "CrashLoop", f"{message_args[:LIMIT]}\nResolution: {hint}", image_id=image_id
    )


def is_ours(text: str) -> bool:
    """Check whether the tool wrote the message: it has the lines of the tool's summary."""
    return text.startswith("ERROR: ") and "\nCode: " in text


def _hint(text: str, code: Any, role: ContainerRole, container: str) -> str:
    """Suggest a remedy for a failed run.

    Args:
        text: The message of the run, empty if it left none.
        code: The exit code of the container.
        role: The container's role.
        container: The container's name.
    """
    if "exec format error" in text:
        return "The image is built for another processor architecture; use one for the node's."
    if "not found" in text or "no such file" in text or code in (126, 127):
        return (
            "The image must contain /bin/sh and Python, and a provider image pip as well. "
            "Build it from an image that does, for example python:3.12-slim."
        )
    log = log_of_last_run(role, container)
    if code == 0 and role.has_command:
        return f"A server must run until it is stopped. Correct containerSpec.command and args. {log}"
    return log


def log_of_last_run(role: ContainerRole, container: str) -> str:
    """Return sentences with the command that shows the log of the run that ended.

    They name the external providers, any of which can end the server.
    """
    named = ", ".join(f"'{provider_id}'" for provider_id in role.suspects)
    suspects = (
        f"External providers run in the server's process: {named}. If the log names no other cause, remove one after "
        "another from externalProviders. "
    )
    return (
        f"{suspects if named else ''}"
        f"See the container's log: kubectl logs -n {role.namespace} {role.pod} -c {container} --previous"
    )


def _pull(image_label: str, image: str, reason: str, text: str) -> str:
    detail = f" ({reason}: {text})" if text else f" ({reason})"
    return (
        f"Failed to pull {image_label} {image}{detail}\n"
        "Resolution: Check the image's name. If the registry requires credentials, add a Secret of type "
        "kubernetes.io/dockerconfigjson to imagePullSecrets of the pods' ServiceAccount."
    )


def _config(reason: str, text: str) -> str:
    mounts = {
        "subPath": "Correct the subPath in podOverrides.volumeMounts.",
        "mount": "Correct podOverrides.volumes and volumeMounts.",
    }
    remedy = configuration_remedy(text, "containerSpec.command") or next(
        (remedy for phrase, remedy in mounts.items() if phrase in text),
        "Correct what the message names in containerSpec, podOverrides or the image.",
    )
    return f"The container cannot be created ({reason}): {text}\nResolution: {remedy}"


def configuration_remedy(text: str, command: str) -> str:
    """Suggest a remedy for a container that cannot be created.

    Args:
        text: The kubelet's message.
        command: The field with the container's command.

    Returns:
        The remedy, empty for an unknown cause.
    """
    remedies = {
        "no command specified": f"The image has no ENTRYPOINT or CMD: set {command} or use another.",
        "runAsNonRoot": "The image runs as root, which the namespace does not allow: use one with a numeric USER.",
        "non-numeric user": "The image's USER is a name, which cannot be checked: use an image with a numeric USER.",
        # Also "executable file not found", which is about no object.
        "exec:": f"The command is not in the image: correct {command}, or use another image.",
        "executable file": f"The command is not in the image: correct {command}, or use another image.",
        "not found": "Create the Secret or ConfigMap that the message names, or correct the reference to it.",
        "couldn't find key": "Add the key to the Secret or ConfigMap that the message names, or correct the key.",
    }
    return next((remedy for phrase, remedy in remedies.items() if phrase in text), "")


def _facts(text: str) -> dict[str, str]:
    """Read the single line of JSON that a successful install container leaves."""
    try:
        value = decode(text.encode())
    except Unreadable:
        return {}
    if not isinstance(value, dict):
        return {}
    # a container may write anything: show only strings
    facts = {
        key: detail
        for key in ("package", "version", "providerType")
        if isinstance(detail := value.get(key), str) and detail
    }
    warnings = value.get("warnings")
    texts = [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
    if texts:
        facts["warnings"] = "WARNING: " + "; ".join(texts)
    return facts


def complete(text: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return the message, preceded by the facts that it lacks (FR-030): (`Provider`, `my-vllm`) and so on."""
    lines = text.splitlines()
    if is_ours(text):
        # The tool shortens long values.
        stated = {line.partition(": ")[0] for line in lines}
        facts = [(label, value) for label, value in facts if label not in stated]
    missing = [f"{label}: {value}" for label, value in facts if value and f"{label}: {value}" not in lines]
    return "\n".join([*missing, text])
