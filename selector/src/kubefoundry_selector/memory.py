"""The selector's memory of one ModelDeployment, in `status.selection` (contract §5).

It survives a restart, belongs to one field manager, and has a documented format, so that another selector can take
over. Releases before 0.2 kept it in the message of `ProviderSelected`, which is still read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from kubefoundry_sdk.selector import PROVIDER_SELECTED, clip, find

SELECTED: Final = ("AutoSelected", "NoHealthyProviders", "NoMatchingProvider")
"""Reasons of `ProviderSelected` that a selector sets; the others are core's."""

MAX_WORDS: Final = 1024
"""Characters that are kept of one provider's message."""

MAX_TEXT: Final = 8192
"""Characters of a condition's message."""

_TRAILER: Final = re.compile(
    r"(?: \[left out: (?P<left_out>[a-z0-9.\-]+(?:, [a-z0-9.\-]+)*)\])?"
    r"(?: \[reselect: (?P<reselect>[A-Za-z0-9_.:+\-]{1,80})\])?\Z"
)
"""The memory in a message of an earlier release."""

_SHORT: Final = re.compile(r"[A-Za-z0-9_.:+\-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Memory:
    """The state that a selector keeps of one ModelDeployment.

    Attributes:
        left_out: The providers that refused this generation of the spec before they created anything, each with its
            message (`quoted`), by `refuser`.
        reselect: The last value of the annotation that was acted on, as `mark` returns it.
        denied: The providers that the creator may not use, each with the reason, when a provider was last chosen.
    """

    left_out: Mapping[str, str] = field(default_factory=dict)
    reselect: str | None = None
    denied: Mapping[str, str] = field(default_factory=dict)

    def without(self, provider: str, words: str, engine: str | None) -> Memory:
        """Return the memory with this provider left out, for the selected engine if the spec names none.

        The message of an earlier refusal stays.
        """
        name = refuser(provider, engine)
        return replace(self, left_out={**self.left_out, name: self.left_out.get(name, words)})

    def has_refused(self, provider: str | None, engine: str | None) -> bool:
        """Check whether the provider has refused the selected engine."""
        return engine is not None and refuser(provider, engine) in self.left_out

    def has_refused_another(self, provider: str | None, engine: str | None) -> bool:
        """Check whether the provider has refused this generation, but not with the selected engine."""
        refused = {name for name in self.left_out if refuser_parts(name)[0] == provider}
        return engine is not None and bool(refused) and refuser(provider, engine) not in refused

    def to_status(self) -> dict[str, Any]:
        """Return the value of `status.selection`. An empty `reselect` says that no value was acted on."""
        lists = {
            field: [{"name": name, "message": words} for name, words in providers.items()]
            for field, providers in (("leftOut", self.left_out), ("denied", self.denied))
            if providers
        }
        return {"reselect": self.reselect or "", **lists}


def mark(value: str | None) -> str | None:
    """Return a value of the annotation, or a digest if it is long or has odd characters; None if it is empty."""
    if not value:
        return None
    return value if _SHORT.fullmatch(value) else f"sha256:{sha256(value.encode()).hexdigest()[:16]}"


def shortened(text: str) -> str:
    """Return a text that fits into the message of a condition."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def refuser(provider: str | None, engine: str | None) -> str:
    """Return the name of a left-out provider: PROVIDER/ENGINE if it refused a selected engine (contract §5)."""
    return f"{provider}/{engine}" if engine else str(provider)


def refuser_parts(name: str) -> tuple[str, str | None]:
    """Return the provider of a `refuser`, and the engine, None if the spec names it."""
    provider, _, engine = name.partition("/")
    return provider, engine or None


def left_out_for(left_out: Mapping[str, str], engine: str) -> dict[str, str]:
    """Return the providers that refused the spec with this engine, by name."""
    split = [(refuser_parts(name), words) for name, words in left_out.items()]
    return {provider: words for (provider, refused), words in split if refused in (None, engine)}


def refusals(left_out: Mapping[str, str]) -> str:
    """Return the refusals as part of a text; empty if there are none."""
    split = [(refuser_parts(name), words) for name, words in left_out.items() if words]
    return "".join(
        f"; {provider} refused it{f' with engine {engine}' if engine else ''}: {words}"
        for (provider, engine), words in split
    )


def quoted(words: str) -> str:
    """Return a provider's message, quoted so that it can be found in a text with others."""
    clean = " ".join(words.replace(";", ",").replace(". ", ", ").split()).strip(".,[] ")
    return clip(clean, MAX_WORDS)


def recall(status: Mapping[str, Any]) -> tuple[str, Memory | None]:
    """Return the text and the memory of the current selection.

    Args:
        status: The status of a ModelDeployment.

    Returns:
        The message of `ProviderSelected`, and the memory. ("", None) if no selector has decided. The memory is None
        if the selector that decided keeps none. It is returned even if somebody has removed the condition.
    """
    condition = find(status.get("conditions"), PROVIDER_SELECTED) or {}
    kept = status.get("selection")
    is_lost = not condition and isinstance(kept, Mapping)
    if condition.get("reason") not in SELECTED and not is_lost:
        return "", None
    message = str(condition.get("message") or "")
    if not isinstance(kept, Mapping):
        return _from_message(message)
    reselect = str(kept.get("reselect") or "") or None
    return message, Memory(_messages(kept.get("leftOut")), reselect, _messages(kept.get("denied")))


def _messages(value: Any) -> dict[str, str]:
    """Return the message of each provider of a list in the status."""
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return {str(item["name"]): str(item.get("message") or "") for item in items if item.get("name")}


def _from_message(message: str) -> tuple[str, Memory | None]:
    """Return the text and the memory in a message of an earlier release; None if it has no memory."""
    for start in (match.start() for match in re.finditer(r" \[|\Z", message)):
        trailer = _TRAILER.match(message, start)
        if trailer and start < len(message):
            text, names = message[:start], (trailer["left_out"] or "").split(", ")
            return text, Memory(_words(text, [name for name in names if name]), trailer["reselect"])
    return message, None


def _words(text: str, names: Iterable[str]) -> dict[str, str]:
    """Return the message of each of `names` (`quoted`), read from a text; empty if the text does not mention it."""
    words = {}
    for name in names:
        match = re.search(rf"(?:^|[ ;:]){re.escape(name)} refused it: (.*?)(?:; |\. |\Z)", text, re.S)
        words[name] = match[1] if match else ""
    return words
