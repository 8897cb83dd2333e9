"""`plan`, `explain`, `render` and `import --dry-run` predict what the controllers then do, for random edits.

A short run with a fixed seed is part of the tests; `make predictions` makes 1,000 edits with another seed each time.
To repeat one: `KUBEFOUNDRY_PREDICTIONS_SEED` and `KUBEFOUNDRY_PREDICTIONS_EDITS`.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.predictions.editor import Editor

SEED = int(os.environ.get("KUBEFOUNDRY_PREDICTIONS_SEED", "28"))
EDITS = int(os.environ.get("KUBEFOUNDRY_PREDICTIONS_EDITS", "30"))
MODELS = 3
"""That are edited at the same time, each by one editor."""

# 240 edits took 455 s on two cores with a load of 18
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600 + 10 * EDITS)]


async def test_commands_predict_the_cluster(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubefoundry = CommandLine(suite.plane.kubeconfig, namespace)
    editors = [
        Editor(api, kubefoundry, namespace, f"m{number}", Random(f"{SEED}-{number}"), tmp_path)
        for number in range(MODELS)
    ]

    async def edit(editor: Editor) -> None:
        for _ in range(EDITS // MODELS):
            await editor.once()

    async with asyncio.TaskGroup() as group:
        for editor in editors:
            group.create_task(edit(editor))

    kinds = sum((editor.kinds for editor in editors), Counter[str]())
    differences = [one for editor in editors for one in editor.differences]
    with capsys.disabled():
        print(f"\npredictions: seed {SEED}, {kinds.total()} edits, {len(differences)} differences")
    assert not differences, "\n".join(differences)
