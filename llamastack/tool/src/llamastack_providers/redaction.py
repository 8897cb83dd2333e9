"""Removes the values of variables from a text that leaves the log.

It finds honest leaks: an error that repeats a value, whole or cut, as it is or quoted for Python, JSON, a URL or
base64. A hostile provider has the value and a network, and no redaction stops it. If a value cannot be searched for,
no words of a provider are shown at all. The command line's `kubefoundry_cli.redaction` knows no values: it keeps a
list of fields, and removes text that looks like a credential.
"""

from __future__ import annotations

import base64
import itertools
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
TOKEN: Final = "(token of the ServiceAccount)"
SERVICE_TOKEN: Final = "(token of a provider's service)"
"""Shown instead of the tokens."""
_VARIABLE: Final = re.compile(r"\$\{env\.([A-Z0-9_]+)")


@dataclass(frozen=True, slots=True)
class Redaction:
    """The values to remove.

    Attributes:
        values: Values of variables that the configuration names, by name.
        secret: Names of those that come from a Secret or ConfigMap.
        unknown: Why there may be secrets whose values are not among them. Empty if there are none.
        token: The token of the pod's ServiceAccount, empty if the container has none.
        service_tokens: The tokens for the services of providers.
    """

    values: Mapping[str, str]
    secret: frozenset[str] = frozenset()
    unknown: str = ""
    token: str = ""
    service_tokens: Sequence[str] = ()
    _pieces: dict[int, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            self._add(value, f"${{env.{name}}}", in_parts=name in self.secret)
        self._add(self.token, TOKEN, in_parts=True)
        for token in self.service_tokens:
            self._add(token, SERVICE_TOKEN, in_parts=True)

    def _add(self, value: str, substitute: str, *, in_parts: bool) -> None:
        """Add the pieces of a value, in all of its forms, for which `clean` shows the substitute."""
        for form in map(_flat, _forms(value)):
            size = min(len(form), _PIECE) if in_parts else len(form)
            if size >= _SHORTEST:
                pieces = (form[start : start + size] for start in range(len(form) - size + 1))
                self._pieces.setdefault(size, {}).update(dict.fromkeys(pieces, substitute))

    @property
    def blind(self) -> str:
        """Describe why a value cannot be searched for in a text. Empty if all can."""
        short = [
            name for name in sorted(self.secret) if 0 < len(self.values.get(name, "").strip()) < _SHORTEST
        ]
        return f"the value of {short[0]} is too short to be found in it" if short else self.unknown

    def clean(self, text: str) -> str:
        """Return the text with `${env.NAME}` or TOKEN for each value and each part of a secret."""
        places = [place for place, letter in enumerate(text) if not letter.isspace()]
        flat = _flat(text)
        hidden: dict[int, str] = {}
        for size, pieces in self._pieces.items():
            for start in range(len(flat) - size + 1):
                if substitute := pieces.get(flat[start : start + size]):
                    hidden |= dict.fromkeys(range(places[start], places[start + size - 1] + 1), substitute)
        runs = itertools.groupby(range(len(text)), hidden.get)
        return "".join(substitute or "".join(text[place] for place in run) for substitute, run in runs)


def _flat(text: str) -> str:
    """Return the letters without white space and case, each as one letter."""
    return "".join(letter.lower()[0] for letter in text if not letter.isspace())


def _forms(value: str) -> Iterator[str]:
    """Yield the forms in which libraries repeat a value."""
    raw = value.encode(errors="surrogateescape")
    yield from (value, value.upper(), repr(value)[1:-1], repr(raw)[2:-1], json.dumps(value)[1:-1])
    yield from (urllib.parse.quote(raw), urllib.parse.quote(raw, safe=""), urllib.parse.quote_plus(raw))
    for shift in range(3):
        # Preceding text, such as a user's name, shifts the value by one or two bytes within base64's groups of three.
        encoded = base64.b64encode(bytes(shift) + raw).decode()[
            (0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6
        ]
        yield from (encoded, encoded.replace("+", "-").replace("/", "_"))


def named_in(text: str, also: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the variables that a configuration names, plus others, each once."""
    return tuple(dict.fromkeys([*_VARIABLE.findall(text), *also]))
