"""Waiting for another provider's clean-up."""

from __future__ import annotations

import pytest

from kubefoundry_sdk.provider.reconcile.handover import others, timed_out
from kubefoundry_sdk.runtime.waits import Waits

TIMEOUT = 300.0

KEY = ("n", "m")


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


KEY = ("n", "m")
WHAT = ("u", "dynamo")


def test_the_wait_ends_after_the_time_from_its_first_sight() -> None:
    waits = Waits(TIMEOUT)

    assert waits.left(KEY, WHAT, 100.0) == TIMEOUT
    assert waits.left(KEY, WHAT, 100.0 + TIMEOUT - 1) == 1
    assert waits.left(KEY, WHAT, 100.0 + TIMEOUT) == 0


@pytest.mark.parametrize(
    ("key", "what"),
    [(("n", "other"), WHAT), (KEY, ("recreated", "dynamo")), (KEY, ("u", "kuberay")), (KEY, ("u",))],
)
def test_another_object_or_holder_gets_its_own_time(key: tuple[str, str], what: tuple[str, ...]) -> None:
    waits = Waits(TIMEOUT)
    waits.left(KEY, WHAT, 0.0)

    assert waits.left(key, what, 200.0) == TIMEOUT


def test_a_wait_that_is_over_is_forgotten() -> None:
    waits = Waits(TIMEOUT)
    waits.left(KEY, WHAT, 0.0)

    waits.forget(KEY)

    assert waits.left(KEY, WHAT, 200.0) == TIMEOUT


def test_giving_up_names_who_did_not_clean_up_and_what_to_do() -> None:
    assert timed_out(["dynamo"], TIMEOUT) == (
        "Provider dynamo has not cleaned up in 300 s; going on without. "
        "What it made may still run: delete it by hand"
    )
