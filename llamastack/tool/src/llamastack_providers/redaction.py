"""Removes the values of variables from a text that leaves the log.

A provider may put values into its errors: whole or in part, wrapped, spaced out, in other case, escaped, or
in a common encoding. There is no end to other ways, so if a value cannot be searched for, no words of a
provider are shown at all.
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
"""A part of this length reveals too much of a secret, and rarely occurs in other words."""
_SHORTEST: Final = 4
"""A shorter value occurs in too many words to be removed from a text."""
_ROUNDS: Final = 3
"""How often escapes within escapes are read; those of URLs alone count as one, however often."""
_ESCAPED: Final = re.compile(
    r"(?:%(?:25)*|(?<!\\)\\+x)(?P<byte>[0-9a-f]{2})"
    r"|(?<!\\)\\+(?:u(?P<json>[0-9a-f]{4})|(?P<octal>[0-3][0-7]{2}))"
    r"|&#x0*(?P<html>[0-9a-f]{1,5});|&#0*(?P<decimal>[0-9]{1,6});",
    re.IGNORECASE,
)
"""A letter as others write it: `%41`, `%2541`, `\\x41`, `\\u0041`, `\\101`, `&#x41;`, `&#65;`."""
_LETTER: Final = re.compile(r"(?!0x[0-9a-f]{2})(?<!0(?=x[0-9a-f]{2}))[^\W_]")
"""A letter or digit, but for the `0x` of a byte."""
_BASES: Final = {"octal": 8, "decimal": 10}


@dataclass(frozen=True, slots=True)
class Redaction:
    """The values to remove.

    Attributes:
        values: Values of variables that the configuration names, by name.
        secret: Names of those that come from a Secret or ConfigMap.
        unknown: Why there may be secrets whose values are not among them. Empty if there are none.
    """

    values: Mapping[str, str]
    secret: frozenset[str] = frozenset()
    unknown: str = ""
    _pieces: dict[int, dict[str, str]] = field(default_factory=dict)
    _bare: dict[int, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            for form in _forms(value):
                flat = _flat(_Text.of(form))
                self._add(self._pieces, name, flat, _SHORTEST)
                self._add(self._bare, name, _without_separators(flat), _PIECE)

    def _add(self, pieces: dict[int, dict[str, str]], name: str, form: _Text, shortest: int) -> None:
        text = "".join(form.letters)
        size = min(len(text), _PIECE) if name in self.secret else len(text)
        if size >= shortest:
            of_size = pieces.setdefault(size, {})
            for start in range(len(text) - size + 1):
                of_size.setdefault(text[start : start + size], name)

    @property
    def blind(self) -> str:
        """Describe why a value cannot be searched for in a text. Empty if all can."""
        short = [
            name for name in sorted(self.secret) if 0 < len(self.values.get(name, "").strip()) < _SHORTEST
        ]
        if short:
            return f"the value of {short[0]} is too short to be found in it"
        return self.unknown

    def clean(self, text: str) -> str:
        """Return the text with `${env.NAME}` for each value and each part of a value."""
        if not self._pieces:
            return text
        named: dict[int, str] = {}
        read = _Text.of(text)
        for _ in range(_ROUNDS):
            flat = _flat(read)
            _mark_pieces(named, flat, self._pieces)
            _mark_pieces(named, _without_separators(flat), self._bare)
            before, read = read, _unescaped(read)
            if read.letters == before.letters:
                break
        return "".join(_marked(text, named))


@dataclass(frozen=True, slots=True)
class _Text:
    """A reading of a text.

    Attributes:
        letters: The letters of the reading.
        places: Start and end in the text from which each letter was read.
    """

    letters: Sequence[str]
    places: Sequence[tuple[int, int]]

    @staticmethod
    def of(text: str) -> _Text:
        return _Text(text, [(at, at + 1) for at in range(len(text))])

    def only(self, positions: Sequence[int]) -> _Text:
        return _Text(
            [self.letters[position] for position in positions],
            [self.places[position] for position in positions],
        )


def _mark_pieces(named: dict[int, str], read: _Text, pieces: Mapping[int, Mapping[str, str]]) -> None:
    """Add the variable of each position of the text that belongs to a piece, or is between its letters."""
    text = "".join(read.letters)
    for size, of_size in sorted(pieces.items()):
        for start in range(len(text) - size + 1):
            if name := of_size.get(text[start : start + size]):
                named.update(
                    dict.fromkeys(range(read.places[start][0], read.places[start + size - 1][1]), name)
                )


def _marked(text: str, named: Mapping[int, str]) -> Iterator[str]:
    before = ""
    for position, letter in enumerate(text):
        name = named.get(position, "")
        if name and name != before:
            yield f"${{env.{name}}}"
        elif not name:
            yield letter
        before = name


def _flat(read: _Text) -> _Text:
    """Return lower-case letters without white space."""
    # A letter that becomes several stays unchanged, so that positions stay valid.
    lower = [low if len(low := letter.lower()) == 1 else letter for letter in read.letters]
    return _Text(lower, read.places).only(
        [position for position, character in enumerate(lower) if not character.isspace()]
    )


def _without_separators(flat: _Text) -> _Text:
    return flat.only([match.start() for match in _LETTER.finditer("".join(flat.letters))])


def _unescaped(read: _Text) -> _Text:
    """Replace the escapes of URL encoding, HTML, JSON and Python by their letters."""
    text = "".join(read.letters)
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    done = 0
    for match in _ESCAPED.finditer(text):
        encoding = match.lastgroup or ""
        letters += [*read.letters[done : match.start()], chr(int(match[encoding], _BASES.get(encoding, 16)))]
        places += [
            *read.places[done : match.start()],
            (read.places[match.start()][0], read.places[match.end() - 1][1]),
        ]
        done = match.end()
    return _Text([*letters, *read.letters[done:]], [*places, *read.places[done:]])


def _forms(value: str) -> Iterator[str]:
    """Yield the forms in which the value may be written."""
    raw = value.encode(errors="surrogateescape")
    yield value
    yield value[::-1]
    yield value.upper()
    yield repr(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield html.escape(value)
    # Each byte read as a letter.
    yield raw.decode("latin-1")
    yield urllib.parse.quote(raw, safe="")
    yield urllib.parse.quote_plus(raw)
    yield raw.hex()
    for shift in range(3):
        # Preceding text shifts the value by one or two bytes within base64's groups of three.
        encoded = base64.b64encode(bytes(shift) + raw).decode()
        inner = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


_VARIABLE: Final = re.compile(r"\$\{env\.([A-Z0-9_]+)")


def named_in(text: str, also: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the variables that a configuration names, plus others, each once."""
    return tuple(dict.fromkeys([*_VARIABLE.findall(text), *also]))
