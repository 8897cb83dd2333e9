"""The selector, and the public names for a selector of your own, which adds only the choice.

    from kubefoundry_selector import Choice, run_selector

`candidates` and `keep_or_choose` are pure functions of the state of a `Registry`; `run_selector` is the process
(docs/writing-a-selector.md). Each name is imported on first use, because the command line needs only part of this
package.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk.cel import Environment, InvalidRule, Node, Rule
    from kubefoundry_sdk.cel import Problem as RuleProblem
    from kubefoundry_selector.candidate import Outage, Provider, Request, SelectionRule
    from kubefoundry_selector.decision import keep_or_choose
    from kubefoundry_selector.main import run_selector
    from kubefoundry_selector.registry import Registry
    from kubefoundry_selector.select import Choice, Choose, NoChoice, candidates

    run = run_selector

__all__ = [
    "Choice",
    "Choose",
    "Environment",
    "InvalidRule",
    "NoChoice",
    "Node",
    "Outage",
    "Provider",
    "Registry",
    "Request",
    "Rule",
    "RuleProblem",
    "SelectionRule",
    "candidates",
    "keep_or_choose",
    "run_selector",
]

_WHERE: Final = {
    "Choice": ".select",
    "Choose": ".select",
    "Environment": "kubefoundry_sdk.cel",
    "InvalidRule": "kubefoundry_sdk.cel",
    "NoChoice": ".select",
    "Node": "kubefoundry_sdk.cel",
    "Outage": ".candidate",
    "Provider": ".candidate",
    "Registry": ".registry",
    "Request": ".candidate",
    "Rule": "kubefoundry_sdk.cel",
    "RuleProblem": "kubefoundry_sdk.cel:Problem",
    "SelectionRule": ".candidate",
    "candidates": ".select",
    "keep_or_choose": ".decision",
    "run_selector": ".main",
}

_RENAMED: Final = {"run": "run_selector"}
"""Names of 0.2 that 0.4 removes: `kubefoundry_sdk.run` runs a provider, and has other parameters."""


def __getattr__(name: str) -> Any:
    """Import a public name.

    Raises:
        AttributeError: The name is not public.
    """
    if name in _RENAMED:
        import warnings

        new = _RENAMED[name]
        warnings.warn(f"{__name__}.{name} is deprecated: import {new}", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _WHERE[name].partition(":")
    return getattr(import_module(module, __name__), attribute or name)
