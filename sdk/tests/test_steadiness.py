"""A model that served stays Running for a moment in which its upstream does not say whether it serves."""

from __future__ import annotations

from dataclasses import replace

from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.health.steadiness import PATIENCE, Steadiness

SERVING = Observation("Running", "DeploymentReady", "fine", Replicas(1, 1, 1), Endpoint("m", 8000))
UNCLEAR = Observation(
    "Deploying", "Progressing", "rolling", Replicas(1, 0, 0), Endpoint("m", 8000), unclear=True
)
STOPPED = replace(UNCLEAR, unclear=False)


def test_steadiness_keeps_running_while_unclear() -> None:
    steadiness = Steadiness()
    steadiness.keep("u", SERVING, 100.0)

    seen, left = steadiness.keep("u", UNCLEAR, 200.0)

    assert seen == replace(SERVING, message="rolling", updating=True)
    assert left == PATIENCE


def test_steadiness_ends_after_its_patience() -> None:
    steadiness = Steadiness()
    steadiness.keep("u", SERVING, 100.0)
    steadiness.keep("u", UNCLEAR, 200.0)

    assert steadiness.keep("u", UNCLEAR, 200.0 + PATIENCE - 0.1)[0].phase == "Running"
    assert steadiness.keep("u", UNCLEAR, 200.0 + PATIENCE) == (UNCLEAR, None)


def test_steadiness_starts_again_after_it_served() -> None:
    steadiness = Steadiness()
    for now in (100.0, 200.0):
        steadiness.keep("u", SERVING, now)

        assert steadiness.keep("u", UNCLEAR, now + 50)[1] == PATIENCE


def test_model_that_never_served_is_not_running_when_unclear() -> None:
    assert Steadiness().keep("u", UNCLEAR, 1.0) == (UNCLEAR, None)


def test_other_object_is_not_running_when_unclear() -> None:
    steadiness = Steadiness()
    steadiness.keep("u", SERVING, 1.0)

    assert steadiness.keep("another", UNCLEAR, 2.0) == (UNCLEAR, None)


def test_model_that_stopped_is_not_running_when_unclear() -> None:
    steadiness = Steadiness()
    steadiness.keep("u", SERVING, 1.0)
    steadiness.keep("u", STOPPED, 2.0)

    assert steadiness.keep("u", UNCLEAR, 3.0) == (UNCLEAR, None)
