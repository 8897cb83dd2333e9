"""The manifest that is made from a `Provider` is the one that we ship, right by right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_cli.providers import installed
from kubefoundry_sdk import manifest

FOLDER = Path(__file__).resolve().parents[2] / "manifests" / "providers"


def rights(rules: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Group, resource, name and verb of each."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def compared(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "rules": rights(obj["rules"])} if "rules" in obj else obj


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_it_is_the_one_that_we_ship(name: str) -> None:
    shipped = [one for one in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if one]

    made = manifest(installed()[name], f"kubefoundry/provider-{name}:0.2.0")

    assert [compared(one) for one in made] == [compared(one) for one in shipped]
