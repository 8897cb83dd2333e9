"""Takes the values of variables out of a text before anybody but the log's readers sees it.

A provider may put what it knows into its errors: whole or in part, wrapped, in other case, or in one of the usual
encodings. What it may do beyond that has no end; so where a value cannot be found in a text, no words of a provider
are shown at all.
"""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_PIECE: Final = 8
"""A part of this length gives away too much of a secret, and is in few other words."""
_SHORTEST: Final = 4
"""A shorter value is in too many words to be taken out of a text."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """values: of variables that the configuration names, by name. secret: names of those that come from a Secret or
    ConfigMap. unknown: why there may be secrets whose values are not among them; empty where there are none."""

    values: Mapping[str, str]
    secret: frozenset[str] = frozenset()
    unknown: str = ""
    _pieces: dict[int, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            for form in _forms(value):
                text = "".join(_flat(form)[0])
                size = min(len(text), _PIECE) if name in self.secret else len(text)
                if size >= _SHORTEST:
                    pieces = self._pieces.setdefault(size, {})
                    for start in range(len(text) - size + 1):
                        pieces.setdefault(text[start : start + size], name)

    @property
    def blind(self) -> str:
        """Why a value cannot be found in a text; empty where all can."""
        short = [
            name for name in sorted(self.secret) if 0 < len(self.values.get(name, "").strip()) < _SHORTEST
        ]
        if short:
            return f"the value of {short[0]} is too short to be found in it"
        return self.unknown

    def clean(self, text: str) -> str:
        """The text with `${env.NAME}` for each value and each part of one."""
        letters, places = _flat(text)
        flat = "".join(letters)
        named: dict[int, str] = {}
        for size, pieces in sorted(self._pieces.items()):
            for start in range(len(flat) - size + 1):
                if name := pieces.get(flat[start : start + size]):
                    for at in range(start, start + size):
                        named[places[at]] = name
        return "".join(_marked(text, named))


def _marked(text: str, named: Mapping[int, str]) -> Iterator[str]:
    before = ""
    for at, letter in enumerate(text):
        name = named.get(at, "")
        if letter.isspace() and before and any(named.get(next_) == before for next_ in range(at, at + 20)):
            # the line break in the middle of a wrapped value
            continue
        if name and name != before:
            yield f"${{env.{name}}}"
        elif not name:
            yield letter
        before = name


def _flat(text: str) -> tuple[list[str], list[int]]:
    """Lower-case letters without white space, and the place of each in the text."""
    letters, places = [], []
    for at, letter in enumerate(text):
        if not letter.isspace():
            # a letter that becomes several stays what it is, so that places stay true
            letters.append(low if len(low := letter.lower()) == 1 else letter)
            places.append(at)
    return letters, places


def _forms(value: str) -> Iterator[str]:
    """The value as it may be written."""
    raw = value.encode(errors="surrogateescape")
    yield value
    yield value[::-1]
    yield repr(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield html.escape(value)
    yield urllib.parse.quote(raw, safe="")
    yield urllib.parse.quote_plus(raw)
    yield raw.hex()
    for skipped in range(3):
        # what stands before it moves it by one or two bytes within the groups of three
        encoded = base64.b64encode(bytes(skipped) + raw).decode()
        inner = encoded[(0, 2, 3)[skipped] : (skipped + len(raw)) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


_VARIABLE: Final = re.compile(r"\$\{env\.([A-Z0-9_]+)")


def named_in(text: str, also: Sequence[str] = ()) -> tuple[str, ...]:
    """The variables that a configuration names, and others, each once."""
    return tuple(dict.fromkeys([*_VARIABLE.findall(text), *also]))
