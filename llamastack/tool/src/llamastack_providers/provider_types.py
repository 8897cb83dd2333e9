"""Checks whether two providers have one type. llama-stack keeps one implementation for each API and type, and the
last one wins silently (core/distribution.py, 0.7.3): the configuration of one provider would run another's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llamastack_providers.errors import Code, Failure


@dataclass(frozen=True, slots=True)
class Typed:
    """A provider that is loaded from a module. image: empty if it is in the run configuration itself."""

    section: str
    provider_type: str
    provider_id: str
    module: str
    image: str

    @property
    def name(self) -> str:
        """The type without `inline::` or `remote::`: two spellings of one name count as a mistake."""
        return self.provider_type.partition("::")[2] or self.provider_type

    def __str__(self) -> str:
        return f"provider '{self.provider_id}' ({f'image: {self.image}' if self.image else self.module})"


def taken(providers: Sequence[Typed], known: Mapping[str, Iterable[str]]) -> Failure | None:
    """The first provider whose type another one has. known: llama-stack's built-in types by API.

    Several entries of one module are one implementation.
    """
    seen: dict[tuple[str, str], Typed] = {}
    for one in providers:
        for theirs in known.get(one.section, ()):
            if theirs.partition("::")[2] == one.name:
                text = f"{one.provider_type}, but llama-stack itself has {theirs} for {one.section}"
                return _failure(one, text)
        first = seen.setdefault((one.section, one.name), one)
        if first.module.split("==")[0] != one.module.split("==")[0]:
            return _failure(one, f"{one.provider_type}, but so has {first}: {first.provider_type}")
    return None


def _failure(one: Typed, text: str) -> Failure:
    reason = f"{one} has the type {text}"
    return Failure(Code.ProviderTypeTaken, reason, provider_id=one.provider_id, image=one.image)
