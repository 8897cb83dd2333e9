"""Commands name the claims that core would create."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from support.deployments import CPU


@pytest.mark.parametrize("command", [("explain", "--offline"), ("render", "--provider", "direct")])
@pytest.mark.parametrize(
    ("template", "described"),
    [
        ({}, "10Gi, ReadWriteOnce, the default StorageClass), which stays"),
        (
            {"accessMode": "ReadWriteMany", "storageClassName": "fast", "whenDeleted": "Delete"},
            "10Gi, ReadWriteMany, StorageClass fast), which is deleted",
        ),
    ],
)
def test_created_claim_is_named(
    call: Callable[..., Result],
    file: Callable[..., str],
    command: tuple[str, ...],
    template: dict[str, Any],
    described: str,
) -> None:
    volume = {"name": "weights", "purpose": "modelCache", "claimTemplate": {"size": "10Gi", **template}}
    spec = {**CPU, "model": {**CPU["model"], "storage": {"volumes": [volume]}}}

    done = call(*command, "-f", file(spec))

    note = (
        f"note: core first creates PersistentVolumeClaim m-weights ({described} when the model is deleted, unless it "
        "exists\n"
    )
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count(note) == 1
