"""Checks whether two providers have one type.

llama-stack keeps one implementation for each API and type, and the last one wins silently
(core/distribution.py, 0.7.3): the configuration of one provider would run another's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llamastack_providers.errors import Code, Failure


@dataclass(frozen=True, slots=True)
class Typed:
    """A provider that is loaded from a module.

    Attributes:
        section: llama-stack's API.
        provider_type: Its type, with `inline::` or `remote::`.
        provider_id: Its id.
        module: Its package.
        image: Its image, empty if the provider is in the run configuration itself.
    """

    section: str
    provider_type: str
    provider_id: str
    module: str
    image: str

    @property
    def name(self) -> str:
        """Return the type without `inline::` or `remote::`: two spellings of one name count as a mistake."""
        return self.provider_type.partition("::")[2] or self.provider_type

    def __str__(self) -> str:
        return f"provider '{self.provider_id}' ({f'image: {self.image}' if self.image else self.module})"


def find_clash(providers: Sequence[Typed], built_in: Mapping[str, Iterable[str]]) -> Failure | None:
    """Return the failure of the first provider whose type is taken, or None.

    Several entries of one module are one implementation.

    Args:
        providers: The providers to load.
        built_in: llama-stack's built-in types by API.
    """
    first_of_type: dict[tuple[str, str], Typed] = {}
    for provider in providers:
        for built_in_type in built_in.get(provider.section, ()):
            if built_in_type.partition("::")[2] == provider.name:
                text = f"{provider.provider_type}, but llama-stack itself has {built_in_type} for {provider.section}"
                return _failure(provider, text)
        first = first_of_type.setdefault((provider.section, provider.name), provider)
        if first.module.split("==")[0] != provider.module.split("==")[0]:
            return _failure(provider, f"{provider.provider_type}, but so has {first}: {first.provider_type}")
    return None


def _failure(provider: Typed, text: str) -> Failure:
    reason = f"{provider} has the type {text}"
    return Failure(Code.ProviderTypeTaken, reason, provider_id=provider.provider_id, image=provider.image)
