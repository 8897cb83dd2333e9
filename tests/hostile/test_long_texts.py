"""The time that a text takes grows with its length, not with the square: one tenant's must not stop everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_cli.redaction import scrubbed
from kubefoundry_llamastack.render import ca_bundle
from kubefoundry_sdk._api import foreign_json, foreign_yaml
from kubefoundry_sdk._api.conditions import clip
from kubefoundry_selector import memory
from llamastack_providers import culprit
from llamastack_providers.redaction import Redaction

FRAGMENTS: Final = (
    *("a", "-", " ", "\n", '"', "\\", "x=", "1", "[", "{", "}", ": ", "- ", "&a ", "://", "?", "@", "."),
    *("-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----", "-----BEGIN x-----"),
    *("token", "bearer ", "eyJ", "hf_", "api-key=", " [left out: a", " [reselect: ", "kaito refused it: "),
    "/packages/x/",
)
"""What the functions look for, whole and in pieces."""

ESCAPES: Final = ("\\", "%", "25", "%41", "\\u0041", "\\x4", "&#65;", "&#x0", "0", "${env.A:=", "abcdefgh")
"""What is looked for when secrets are removed, which takes a hundred times as long."""

LENGTH: Final = 20_000
"""Characters; steps in the order of its square are minutes."""


def selected(message: str) -> dict[str, object]:
    """A status with that message of the selector."""
    return {"conditions": [{"type": "ProviderSelected", "reason": "AutoSelected", "message": message}]}


READERS: Final[dict[str, Callable[[str], object]]] = {
    "certificates": lambda text: ca_bundle.bundle({"ca": text}, ["ca"], "cas", is_explicit=True),
    "credentials": scrubbed,
    "JSON": lambda text: foreign_json.decode(text.encode()),
    "foreign_yaml": foreign_yaml.decode,
    "messages": clip,
    "the selector's memory": lambda text: memory.recall(selected(text)),
    "refusals": lambda text: memory.recall(selected(f"{text} [left out: kaito, dynamo]")),
    "secrets": Redaction({"A": "abcdefgh12345678"}, frozenset({"A"})).clean,
    "tracebacks": lambda text: culprit.find(text, Path("/packages"), {}),
}


def texts(fragments: Sequence[str]) -> Iterator[str]:
    """Each fragment, and each pair of fragments, repeated."""
    for parts in [*combinations(fragments, 1), *combinations(fragments, 2)]:
        part = "".join(parts)
        yield part * (LENGTH // len(part))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("reader", READERS)
def test_long_text_is_read_in_one_pass(reader: str) -> None:
    read = READERS[reader]
    for text in texts(ESCAPES if reader == "secrets" else FRAGMENTS):
        with suppress(ValueError):
            read(text)
