"""An edit that the engine of the model cannot run, for a spec that names no engine (contract §5)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import pytest

from kubefoundry_sdk._api.engine_args import ENGINES
from support.selections import Deployment, created, offering, selection

GPU: Final[dict[str, Any]] = {"model": {"id": "org/model"}, "resources": {"gpu": {"count": 1}}}
CPU: Final[dict[str, Any]] = {"model": {"id": "org/model"}}

ENGINE_SETS: Final = [sorted(some) for size in (1, 2, len(ENGINES)) for some in combinations(ENGINES, size)]


@pytest.mark.parametrize(
    ("is_held", "expected"),
    [(False, ("a", "llamacpp")), (True, ("a", "vllm"))],
    ids=["nothing is created", "the provider holds it"],
)
def test_edit_that_the_engine_cannot_run(is_held: bool, expected: tuple[str, str]) -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ENGINES))
    if is_held:
        created(deployment)
    deployment.users_change(CPU)

    deployment.turn(offering("a", ENGINES))

    assert selection(deployment) == expected


@pytest.mark.parametrize("engines", ENGINE_SETS, ids=",".join)
def test_unfit_edit_moves_to_no_other_provider(engines: list[str]) -> None:
    """Core's webhook refuses the edit, unless it does not answer. The provider of the engine says what to revert."""
    holder = replace(offering("a", ENGINES), cpu_support=False)
    deployment = Deployment(GPU)
    deployment.turn(holder)
    created(deployment)
    deployment.users_change(CPU)

    deployment.turn(holder, offering("b", engines, priority=99))

    assert selection(deployment) == ("a", "vllm")
