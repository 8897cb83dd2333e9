"""`kubefoundry provider uninstall`: the objects of a package that is installed here, and the models."""

from __future__ import annotations

import pytest

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.commands.provider import _of_package, _registered
from kubefoundry_cli.install import run
from kubefoundry_cli.install.change import Change
from kubefoundry_cli.providers import named
from kubefoundry_sdk import manifest
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS
from support.deployments import GPU, model_deployment
from support.wire import ok, wire


def test_installed_package_is_removed_without_manifest() -> None:
    objects = _of_package("widgets")

    identities = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    assert identities == {
        (obj["kind"], obj["metadata"]["name"]) for obj in manifest(named("widgets"), "image")
    }
    assert _registered(objects) == "widgets"


def test_included_and_unknown_providers_are_read_elsewhere() -> None:
    assert _of_package("kaito") == _of_package("no-such-provider") == []


async def test_deleted_models_are_shown_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    models = [model_deployment(name, "t", GPU, uid=name) for name in ("a", "b")]
    config = {"metadata": {"name": "kaito", "uid": "c"}}
    changes = [Change(PROVIDER_CONFIGS, config, config)]

    async with wire(lambda asked: ok({"metadata": {"resourceVersion": "1"}, "items": []})) as api:
        session = Session(api.client, "t")
        await run.clear(session, models, changes, "kaito", eject=False, yes=True, seconds=5)

    assert [asked.path.rpartition("/")[2] for asked in api.asked if asked.method == "DELETE"] == ["a", "b"]
    assert capsys.readouterr().out.splitlines() == [
        "will delete  ModelDeployment t/a",
        "will delete  ModelDeployment t/b",
        "will delete  InferenceProviderConfig kaito",
        "deleted      ModelDeployment t/a",
        "deleted      ModelDeployment t/b",
    ]
