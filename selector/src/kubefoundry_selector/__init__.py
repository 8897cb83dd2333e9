"""The selector, and what a selector of one's own needs of it: only the choice is to be written.

    from kubefoundry_selector import Choice, run

`candidates` and `keep_or_choose` are pure; `run` is the process (docs/writing-a-selector.md). Each name is imported
when it is first used: the command line needs only some of this package.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_selector.candidate import Provider, Request
    from kubefoundry_selector.decision import keep_or_choose
    from kubefoundry_selector.main import run
    from kubefoundry_selector.select import Choice, Choose, candidates

__all__ = ["Choice", "Choose", "Provider", "Request", "candidates", "keep_or_choose", "run"]

_WHERE: Final = {
    "Choice": "select",
    "Choose": "select",
    "Provider": "candidate",
    "Request": "candidate",
    "candidates": "select",
    "keep_or_choose": "decision",
    "run": "main",
}


def __getattr__(name: str) -> Any:
    """Imports a public name. Raises AttributeError for any other."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"kubefoundry_selector.{_WHERE[name]}"), name)
