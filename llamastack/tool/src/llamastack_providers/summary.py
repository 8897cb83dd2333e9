"""Formats a container's final message: a summary that survives the kubelet's limits, then the detail.

The kubelet reads at most 4096 bytes of a message, and cuts each container's to 12,288 bytes divided by the
number of containers of the pod (kubernetes pkg/kubelet/container/runtime.go and
pkg/kubelet/status/status_manager.go, 1.36).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llamastack_providers.errors import Failure

SUMMARY_BYTES: Final = 900
"""Fits thirteen containers."""
MESSAGE_BYTES: Final = 4096
_FIELD_BYTES: Final = 170
_API_SECTION: Final = "{api}"


@dataclass(frozen=True, slots=True)
class Origin:
    """The subject of a message.

    Attributes:
        provider_id: The provider, empty if the message is about none.
        image: The image.
        container: The container.
        init: Whether that is an init container.
    """

    provider_id: str = ""
    image: str = ""
    container: str = ""
    init: bool = True


def failure_text(failure: Failure, origin: Origin) -> str:
    """Return the whole message: at most SUMMARY_BYTES up to and with `Resolution:`, then the detail."""
    summary = _summary(failure, origin)
    return f"{summary}\n\n{failure.detail.strip()}\n" if failure.detail.strip() else f"{summary}\n"


def success_text(facts: Mapping[str, str], warnings: Sequence[str]) -> str:
    """Return one line of JSON, at most SUMMARY_BYTES.

    It has the facts, as many warnings as fit, and the number of the other warnings.
    """
    for count in range(len(warnings), -1, -1):
        left = len(warnings) - count
        shown = [_cut(warning, 240) for warning in warnings[:count]]
        value = {**{key: _cut(text, _FIELD_BYTES) for key, text in facts.items()}, "warnings": shown}
        line = json.dumps({**value, "more": left} if left else value, ensure_ascii=False)
        if len(line.encode(errors="backslashreplace")) <= SUMMARY_BYTES:
            return line
    return "{}"


def write(text: str, path: Path) -> None:
    """Pass the text to the kubelet, if the container has a termination log."""
    try:
        path.write_bytes(_cut(text, MESSAGE_BYTES).encode(errors="backslashreplace"))
    except OSError as refused:
        # the message is in the log as well; the exit code must not depend on this
        print(f"cannot write {path}: {refused}")


def _summary(failure: Failure, origin: Origin) -> str:
    entry = failure.code.value
    provider_id = failure.provider_id or origin.provider_id
    image = _middle(failure.image or origin.image, _FIELD_BYTES)
    container = _middle(origin.container, 63)
    head = [f"ERROR: {entry.title.format(id=provider_id)}", ""]
    if provider_id and not entry.names_provider:
        head.append(f"Provider: {provider_id}")
    if failure.module:
        head.append(f"Module: {_middle(failure.module, 80)}")
    if image and not entry.names_provider:
        head.append(f"Image: {image}")
    if container:
        label = "Init Container" if origin.init else "Container"
        head.append(f"{label}: {container}")
    head += [f"Code: {failure.code.name}", ""]
    tail = ["", entry.note, ""] if entry.note else [""]
    tail.append(f"Resolution: {entry.resolution.replace(_API_SECTION, failure.api)}")
    reason = failure.reason.replace(failure.image or origin.image or "\0", image)
    label = "" if entry.names_provider else "Reason: "
    fixed = len("\n".join([*head, label, *tail]).encode(errors="backslashreplace"))
    return "\n".join([*head, label + _cut(reason, SUMMARY_BYTES - fixed), *tail])


def _cut(text: str, size: int) -> str:
    """Return at most `size` bytes from the start, with an ellipsis at the end if it was cut."""
    raw = text.encode(errors="backslashreplace")
    if len(raw) <= size:
        return text
    return raw[: size - 3].decode(errors="ignore") + "…"


def _middle(text: str, size: int) -> str:
    """Return at most `size` bytes. Keeps start and end, because an image's registry and digest both matter."""
    raw = text.encode(errors="backslashreplace")
    if len(raw) <= size:
        return text
    half = (size - 3) // 2
    return raw[:half].decode(errors="ignore") + "…" + raw[-half:].decode(errors="ignore")
