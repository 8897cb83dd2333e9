"""`plan -f` and `explain -f` foresee the object that `kubectl apply` of the file stores, for random files."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pytest

from kubefoundry_cli.apply import applied
from kubefoundry_cli.model import edited
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.validation import default, validate
from kubefoundry_sdk._cluster.client import Client
from support.deployments import model_deployment
from support.predictions.edits import STARTS, some_edit

pytestmark = pytest.mark.integration

CASES: Final = 20
LABELS: Final[tuple[dict[str, str], ...]] = ({}, {"team": "a"}, {"team": "b", "kubefoundry.ai/x": "y"})


def some_valid(chance: Random, obj: Object) -> Object:
    """Return the object after random edits of its spec that leave it valid."""
    while True:
        options = [option for _ in range(chance.choice((1, 2, 3))) for option in some_edit(chance)]
        changed = edited(obj, options)
        if not validate(changed["spec"]):
            return {**changed, "metadata": {**changed["metadata"], "labels": dict(chance.choice(LABELS))}}


def kubectl_apply(plane: ControlPlane, obj: Object, *flags: str) -> Any:
    return json.loads(plane.kubectl("apply", *flags, "-o", "json", "-f", "-", input=json.dumps(obj)).stdout)


@pytest.mark.parametrize("flags", [(), ("--server-side", "--force-conflicts")], ids=["client", "server"])
async def test_apply_stores_the_object_that_was_foreseen(
    cluster: ControlPlane, api: Client, namespace: str, flags: tuple[str, ...]
) -> None:
    differences = []
    for seed in range(CASES):
        chance = Random(seed)
        spec, provider = chance.choice(STARTS)
        file = some_valid(chance, model_deployment(f"m{seed}", namespace, spec, provider=provider))
        kubectl_apply(cluster, file, *flags)
        before = await api.get(MODEL_DEPLOYMENTS, f"m{seed}", namespace)
        others = some_valid(chance, before)
        if flags:
            # A server-side apply keeps single variables of others; `applied` takes lists as a whole.
            others["spec"] = {**others["spec"], "env": before["spec"].get("env") or []}
        patch = [{"op": "replace", "path": "/spec", "value": others["spec"]}]
        live = await api.json_patch(MODEL_DEPLOYMENTS, f"m{seed}", namespace, patch, manager="other")
        file = some_valid(chance, file)
        foreseen = applied(file, live)
        if validate(foreseen["spec"]):
            continue

        stored = kubectl_apply(cluster, file, *flags, "--dry-run=server")

        for what, expected, actual in (
            ("spec", default(foreseen["spec"]), stored["spec"]),
            ("labels", foreseen["metadata"].get("labels") or {}, stored["metadata"].get("labels") or {}),
        ):
            if expected != actual:
                keys = sorted(key for key in {**expected, **actual} if expected.get(key) != actual.get(key))
                pairs = {key: (expected.get(key), actual.get(key)) for key in keys}
                differences.append(f"seed {seed}, {what}, foreseen and stored: {pairs}")
    assert differences == []
