"""What a selection remembers beyond the provider's name, in the message of its own condition.

It has to survive a restart and belong to one field manager, and a status condition is all that the selector may write
on a ModelDeployment. People read the same words. The generation is the condition's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from kubefoundry_sdk.api.conditions import clip

MAX_WORDS: Final = 1024
"""Characters that are kept of one provider's message."""

MAX_TEXT: Final = 8192
"""Characters of text; a condition may have 32768 in all."""

_TRAILER: Final = re.compile(
    r"(?: \[left out: (?P<left_out>[a-z0-9.\-]+(?:, [a-z0-9.\-]+)*)\])?"
    r"(?: \[reselect: (?P<reselect>[A-Za-z0-9_.:+\-]{1,80})\])?\Z"
)
_SHORT: Final = re.compile(r"[A-Za-z0-9_.:+\-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Memory:
    """left_out: providers that refused this generation of the spec before they created anything.

    reselect: the last value of the annotation that was acted on, as `mark` returns it.
    """

    left_out: tuple[str, ...] = ()
    reselect: str | None = None


def mark(value: str | None) -> str | None:
    """A value of the annotation, or a digest if it is long or has odd characters. An empty value requests nothing."""
    if not value:
        return None
    return value if _SHORT.fullmatch(value) else f"sha256:{sha256(value.encode()).hexdigest()[:16]}"


def remember(text: str, memory: Memory) -> str:
    """A condition's message with the memory appended and the text cut to leave room for it."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 1]}…"
    left_out = f" [left out: {', '.join(memory.left_out)}]" if memory.left_out else ""
    reselect = f" [reselect: {memory.reselect}]" if memory.reselect else ""
    return f"{text}{left_out}{reselect}"


def refusals(said: Mapping[str, str]) -> str:
    """The refusals as part of a text; empty if there are none."""
    return "".join(f"; {name} refused it: {words}" for name, words in said.items() if words)


def quoted(words: str) -> str:
    """A provider's message, quoted so that it can be found in a text with others."""
    clean = " ".join(words.replace(";", ",").replace(". ", ", ").split()).strip(".,[] ")
    return clip(clean, MAX_WORDS)


def words_of(text: str, names: Iterable[str]) -> dict[str, str]:
    """The message of each of `names` (`quoted`), read from a text; empty for one that the text does not mention."""
    found = {}
    for name in names:
        match = re.search(rf"(?:^|[ ;:]){re.escape(name)} refused it: (.*?)(?:; |\. |\Z)", text, re.S)
        found[name] = match[1] if match else ""
    return found


def recall(message: str) -> tuple[str, Memory]:
    """The text and the memory in a message; no memory if another selector wrote it."""
    for start in (match.start() for match in re.finditer(r" \[|\Z", message)):
        found = _TRAILER.match(message, start)
        if found:
            left_out = tuple(found["left_out"].split(", ")) if found["left_out"] else ()
            return message[:start], Memory(left_out, found["reselect"])
    return message, Memory()
