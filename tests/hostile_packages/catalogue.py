"""Every hostile package of the tests, by kind, with the outcome that it has to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from support.hostile_image_variants import IMAGE_KINDS
from support.hostile_images import FILES, WHEELS, HostileImage
from support.hostile_provider_variants import PROVIDER_KINDS
from support.hostile_providers import LOADING, PRYING, SHADOWING, TYPES, Hostile
from support.hostile_runs import ID
from support.unfit_images import UNFIT

IMAGES: Final[Mapping[str, Mapping[str, HostileImage]]] = {
    "an image that does not fit": UNFIT,
    "an image with": FILES,
    "a wheel with": WHEELS,
    **IMAGE_KINDS,
}
PROVIDERS: Final[Mapping[str, Mapping[str, Hostile]]] = {
    "a provider that, when it is loaded,": LOADING,
    "a provider whose type": TYPES,
    "a provider that shadows modules:": SHADOWING,
    "a provider that": PRYING,
    **PROVIDER_KINDS,
}


@dataclass(frozen=True, slots=True)
class Package:
    """name: of the variant within its kind."""

    kind: str
    name: str
    case: HostileImage | Hostile

    @property
    def command(self) -> str:
        """Of the tool, which says it first."""
        return "install" if isinstance(self.case, HostileImage) else "preflight"

    @property
    def culprit(self) -> Sequence[str]:
        """The words by which a message names it: provider and image."""
        if isinstance(self.case, HostileImage):
            return ID, "images/echo:1"
        return f"Provider: {self.case.culprit}\n", f"Image: images/{self.case.culprit}:1\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """seen: the code of the message, empty for success. named: whether the message names provider and image."""

    package: Package
    seen: str
    named: bool

    @property
    def expected(self) -> bool:
        """Whether the code is the expected one, and a refusal names its culprit."""
        return self.seen == self.package.case.code and (self.named or not self.seen)


def packages() -> list[Package]:
    """All of them, kind by kind."""
    groups: list[tuple[str, Mapping[str, HostileImage | Hostile]]] = [
        *IMAGES.items(),
        *PROVIDERS.items(),
    ]
    return [Package(kind, name, case) for kind, cases in groups for name, case in cases.items()]
