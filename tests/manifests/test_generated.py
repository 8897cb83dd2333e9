"""The manifest that is made from a `Provider` is the one that we ship, right by right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kopf.cli
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
def test_generated_manifest_equals_shipped_manifest(name: str) -> None:
    shipped = [one for one in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if one]

    made = manifest(installed()[name], f"kubefoundry/provider-{name}:0.2.0")

    assert [compared(one) for one in made] == [compared(one) for one in shipped]


def kopf_manifest() -> list[dict[str, Any]]:
    image, program = "example.com/widget-operator:0.1.0", "/app/operator_with_provider.py"
    return manifest(installed()["widgets"], image, kopf=program)


def test_manifest_of_kopf_example_is_generated() -> None:
    file = FOLDER.parents[1] / "examples" / "kopf-provider" / "manifest.yaml"

    assert [document for document in yaml.safe_load_all(file.read_text()) if document] == kopf_manifest()


def test_kopf_accepts_the_arguments_of_its_manifest() -> None:
    [deployment] = [document for document in kopf_manifest() if document["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    program, subcommand, *arguments = container["command"]

    context = kopf.cli.main.commands[subcommand].make_context(subcommand, arguments)

    assert (program, context.params["standalone"], context.params["clusterwide"]) == ("kopf", True, True)
    assert context.params["paths"] == ("/app/operator_with_provider.py",)
    assert "args" not in container, "kopf rejects the provider's flags"


def test_kopf_may_list_and_watch_every_crd() -> None:
    [role] = [
        document
        for document in kopf_manifest()
        if document["metadata"]["name"] == "kubefoundry-provider-widgets"
        and document["kind"] == "ClusterRole"
    ]

    permitted = rights(role["rules"])

    for verb in ("list", "watch"):
        assert ("apiextensions.k8s.io", "customresourcedefinitions", "", verb) in permitted
