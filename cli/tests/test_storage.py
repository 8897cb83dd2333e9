"""An interrupted move of stored objects: its exit code, and what continues it."""

from __future__ import annotations

import pytest

from kubefoundry_cli.failure import Exit
from kubefoundry_cli.install import storage
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

CONTINUES = "kubefoundry controller migrate then continues"


@pytest.mark.parametrize(
    ("error", "code", "ending"),
    [
        (Unreachable("connection refused"), Exit.NO_CLUSTER, f"(connection refused); {CONTINUES}"),
        (ApiError(403, "Forbidden", "no"), Exit.FORBIDDEN, CONTINUES),
        (ApiError(409, "Conflict", "modified"), Exit.CHANGED, CONTINUES),
        (ApiError(429, "TooManyRequests", "slow down"), Exit.NO, f"slow down; {CONTINUES}"),
        (ApiError(422, "Invalid", "spec.x"), Exit.NO, f"spec.x; repair the object; {CONTINUES}"),
    ],
)
def test_failure_keeps_its_exit_code(error: ApiError | Unreachable, code: Exit, ending: str) -> None:
    failure = storage._interrupted(error, "move ModelDeployment 'm'")

    assert failure.exit_code == code
    assert failure.message.startswith("cannot move ModelDeployment 'm'")
    assert failure.message.endswith(ending)
