"""The value `models` of the chart: settings of the pods of models."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from support.helm import CHART, Helm, values_file

pytestmark = pytest.mark.integration

SYSTEM: Final = "kubefoundry-system"


def test_settings_of_models_reach_each_provider(helm: Helm, tmp_path: Path) -> None:
    models = {
        "hfEndpoint": "https://hub.example.com",
        "httpProxy": "http://proxy.example.com:3128",
        "httpsProxy": "http://proxy.example.com:3129",
        "noProxy": ".svc,10.0.0.0/8",
        "caBundle": "company-ca/ca.crt",
    }
    flags = [
        "--pod-hf-endpoint=https://hub.example.com",
        "--pod-http-proxy=http://proxy.example.com:3128",
        "--pod-https-proxy=http://proxy.example.com:3129",
        "--pod-no-proxy=.svc,10.0.0.0/8",
        "--pod-ca-bundle=company-ca/ca.crt",
    ]

    objects = helm.rendered(CHART, *values_file(tmp_path / "v", {"models": models}), namespace=SYSTEM)

    stated = {
        obj["metadata"]["name"]: [
            arg
            for arg in obj["spec"]["template"]["spec"]["containers"][0]["args"]
            if arg.startswith("--pod-")
        ]
        for obj in objects
        if obj["kind"] == "Deployment"
    }
    providers = {name for name in stated if name.startswith("kubefoundry-provider-")}
    assert len(providers) == 4
    assert stated == {name: flags if name in providers else [] for name in stated}
