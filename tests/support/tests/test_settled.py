"""A prediction is compared only once the chosen provider itself has answered the edit."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import condition
from kubefoundry_sdk._api.handover import entry
from kubefoundry_sdk._api.kinds import Object
from support.predictions.world import settled

FIELDS = entry("kaito", reasons.PROVIDER_COMPATIBLE)["fieldsV1"]["f:status"]["f:conditions"]
[KEY] = FIELDS


def edited(fields: dict[str, Any]) -> Object:
    """Return an edit that provider direct refused before kaito was named. Kaito owns these fields of the refusal."""
    conditions = [
        condition(reasons.VALIDATED, True, "ValidationPassed", "", generation=2),
        condition(reasons.PROVIDER_SELECTED, True, "ExplicitlySelected", "", generation=2),
        condition(reasons.PROVIDER_COMPATIBLE, False, "Unsupported", "", generation=2),
    ]
    chosen = entry("kaito", reasons.PROVIDER_COMPATIBLE)
    chosen["fieldsV1"] = {"f:status": {"f:conditions": {KEY: fields}}}
    return {
        "metadata": {
            "name": "m",
            "generation": 2,
            "managedFields": [entry("direct", reasons.PROVIDER_COMPATIBLE), chosen],
        },
        "spec": {"provider": {"name": "kaito"}},
        "status": {"provider": {"name": "kaito"}, "conditions": conditions},
    }


@pytest.mark.parametrize("missing", sorted(FIELDS[KEY]))
def test_condition_shared_in_part_is_no_answer(missing: str) -> None:
    shared = {name: value for name, value in FIELDS[KEY].items() if name != missing}

    assert settled(edited(FIELDS[KEY]), [])
    assert not settled(edited(shared), [])
