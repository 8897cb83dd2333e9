"""A selector by policy: choose the first provider in the list of the namespace that can serve the model.

A model without such a provider gets none. This is no protection, because a user can still name any provider.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kubefoundry_sdk.selector import Process
from kubefoundry_selector import Choice, Choose, Provider, Request, run_selector

ALLOWED: dict[str, tuple[str, ...]] = {
    "team-batch": ("kuberay",),
    "": ("dynamo", "kaito", "kuberay"),
}
"""Providers by namespace; "" stands for all other namespaces."""


def first_allowed(request: Request, candidates: Sequence[Provider]) -> Choice | None:
    """Choose the first allowed provider among the candidates."""
    names = {provider.name for provider in candidates}
    for name in ALLOWED.get(request.namespace, ALLOWED[""]):
        if name in names:
            return Choice(name, f"policy of namespace {request.namespace} → {name}")
    return None


def prepare(process: Process) -> Choose:
    return first_allowed


if __name__ == "__main__":
    sys.exit(run_selector(prepare))
