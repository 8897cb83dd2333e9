"""`kubefoundry provider uninstall` of a provider whose package is installed here."""

from __future__ import annotations

from kubefoundry_cli.commands.provider import _of_package, _registered
from kubefoundry_cli.providers import named
from kubefoundry_sdk import manifest


def test_installed_package_is_removed_without_manifest() -> None:
    objects = _of_package("widgets")

    identities = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    assert identities == {
        (obj["kind"], obj["metadata"]["name"]) for obj in manifest(named("widgets"), "image")
    }
    assert _registered(objects) == "widgets"


def test_included_and_unknown_providers_are_read_elsewhere() -> None:
    assert _of_package("kaito") == _of_package("no-such-provider") == []
