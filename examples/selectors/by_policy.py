"""A selector by policy: each namespace has a list of providers that it may use, the first that can serve is taken.

What is in no list is refused with "no provider fits": a user can still name a provider, so this is no protection.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kubefoundry_sdk.runtime.process import Process
from kubefoundry_selector import Choice, Choose, Provider, Request, run

ALLOWED: dict[str, tuple[str, ...]] = {
    "team-batch": ("kuberay",),
    "": ("dynamo", "kaito", "kuberay"),
}
"""By namespace; "" is any other."""


def first_allowed(asked: Request, candidates: Sequence[Provider]) -> Choice | None:
    names = {one.name for one in candidates}
    for name in ALLOWED.get(asked.namespace, ALLOWED[""]):
        if name in names:
            return Choice(name, f"policy of namespace {asked.namespace} → {name}")
    return None


def prepare(process: Process) -> Choose:
    return first_allowed


if __name__ == "__main__":
    sys.exit(run(prepare))
