"""Waiting for another provider's clean-up."""

from __future__ import annotations

import pytest

from kubefoundry_sdk.provider.reconcile.handover import others, timed_out
from kubefoundry_sdk.runtime.wait import Wait

TIMEOUT = 300.0
WHAT = ("u", "dynamo")


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        (None, []),
        (["kubefoundry.ai/kaito-provider"], []),
        (["kubefoundry.ai/dynamo-provider", "kubefoundry.ai/kaito-provider"], ["dynamo"]),
        (["kubefoundry.ai/my-own-provider", "kubefoundry.ai/dynamo-provider"], ["my-own", "dynamo"]),
        (["foregroundDeletion", "kubefoundry.ai/provider", "example.com/dynamo-provider"], []),
    ],
)
def test_whose_finalizers_hold_it(finalizers: list[str] | None, expected: list[str]) -> None:
    assert others({"metadata": {"finalizers": finalizers}}, "kaito") == expected


def test_the_wait_ends_after_the_time_from_its_first_sight() -> None:
    wait = Wait()

    assert wait.left(WHAT, TIMEOUT, 100.0) == TIMEOUT
    assert wait.left(WHAT, TIMEOUT, 100.0 + TIMEOUT - 1) == 1
    assert wait.left(WHAT, TIMEOUT, 100.0 + TIMEOUT) == 0


@pytest.mark.parametrize(
    "what",
    [("recreated", "dynamo"), ("u", "kuberay"), ("u",)],
)
def test_another_object_or_holder_gets_its_own_time(what: tuple[str, ...]) -> None:
    wait = Wait()
    wait.left(WHAT, TIMEOUT, 0.0)

    assert wait.left(what, TIMEOUT, 200.0) == TIMEOUT


def test_a_wait_that_is_over_is_forgotten() -> None:
    wait = Wait()
    wait.left(WHAT, TIMEOUT, 0.0)

    wait.over()

    assert wait.left(WHAT, TIMEOUT, 200.0) == TIMEOUT


def test_giving_up_names_who_did_not_clean_up_and_what_to_do() -> None:
    assert timed_out(["dynamo"], TIMEOUT) == (
        "Provider dynamo has not cleaned up in 300 s; continuing without it. "
        "What it created may still run: delete it by hand"
    )
