"""Actions of the page on a cluster of the test's objects."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.registration import registration
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.local_page import local_page
from support.upstream import standin


@pytest.mark.parametrize(("replicas", "refused"), [("1", False), ("2", True)])
async def test_scale_button_checks_the_number(tmp_path: Path, replicas: str, refused: bool) -> None:
    answers = Answers()
    spec = default({**GPU, "image": "i", "provider": {"name": "kaito"}, "scaling": {"replicas": 3}})
    obj = model_deployment("m", "models", spec, uid="u", generation=1, resourceVersion="1")
    running = {"ready": True, "version": f"kaito-provider:v{version('kubefoundry-provider-kaito')}"}
    answers.objects = {
        "workspaces": [],
        "modeldeployments": [obj],
        "inferenceproviderconfigs": [{**registration(installed()["kaito"]), "status": running}],
        "customresourcedefinitions": [standin("kaito").document],
    }
    with serving(answers, tmp_path) as kubeconfig:
        async with local_page(kubeconfig, writes=True) as local:
            [csrf] = local.access._sessions.values()
            form = {"csrf": csrf, "uid": "u", "generation": "1", "replicas": replicas}
            url, origin = f"{local.base}/models/models/m/scale", {"Origin": local.base}
            async with local.client.post(url, data=form, headers=origin, allow_redirects=False) as answer:
                text = await answer.text()

    assert (answer.status != 303) == refused, text
    assert ("KAITO serves 1 replica, not 2" in text) == refused
