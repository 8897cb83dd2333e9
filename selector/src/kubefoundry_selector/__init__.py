"""The selector, and the names with which to write your own, which adds only the choice.

    from kubefoundry_selector import Choice, run

`candidates` and `keep_or_choose` are pure functions of the state of a `Registry`; `run` is the process
(docs/writing-a-selector.md). Each name is imported on first use, because the command line needs only part of this
package.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_selector.candidate import Provider, Request
    from kubefoundry_selector.decision import keep_or_choose
    from kubefoundry_selector.main import run
    from kubefoundry_selector.registry import Registry
    from kubefoundry_selector.select import Choice, Choose, NoChoice, candidates

__all__ = [
    "Choice",
    "Choose",
    "NoChoice",
    "Provider",
    "Registry",
    "Request",
    "candidates",
    "keep_or_choose",
    "run",
]

_WHERE: Final = {
    "Choice": "select",
    "Choose": "select",
    "NoChoice": "select",
    "Provider": "candidate",
    "Registry": "registry",
    "Request": "candidate",
    "candidates": "select",
    "keep_or_choose": "decision",
    "run": "main",
}


def __getattr__(name: str) -> Any:
    """Import a public name.

    Raises:
        AttributeError: The name is not public.
    """
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"kubefoundry_selector.{_WHERE[name]}"), name)
