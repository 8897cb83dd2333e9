"""The images: which packages of ours are in each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCKS: Final = ROOT / "requirements"


@dataclass(frozen=True, slots=True)
class Component:
    """A component. `packages`: folders of the packages in its image."""

    name: str
    packages: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program that the manifest starts."""
        return f"kubefoundry-{self.name}"

    @property
    def lock(self) -> Path:
        """The locked dependencies."""
        return LOCKS / f"{self.name}.txt"


def components() -> dict[str, Component]:
    """Return the components by name."""
    providers = [f"providers/{path.parent.name}" for path in sorted(ROOT.glob("providers/*/pyproject.toml"))]
    folders = {
        "core": ("core",),
        "selector": ("selector",),
        **{f"provider-{Path(folder).name}": (folder,) for folder in providers},
        # The page calls functions of the command line and of all providers.
        "dashboard": ("selector", "cli", "dashboard", *providers),
        "llamastack": ("llamastack", "llamastack/tool"),
    }
    return {name: Component(name, ("sdk", *packages)) for name, packages in folders.items()}
