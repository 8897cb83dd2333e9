"""Values that the schemas of the charts refuse, before a template is rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from support.helm import CHART, CRD_CHART, OLDEST, Helm

pytestmark = pytest.mark.integration

REFUSED: Final = {
    "unknown": ["cores.enabled=true"],
    "unknown of a component": ["providers.kaito.image.repository=x"],
    "unknown provider": ["providers.acme.enabled=true"],
    "type": ["core.replicas=many"],
    "log format": ["logFormat=xml"],
    "digest": ["core.image.digest=latest"],
    "engine": ["providers.direct.defaultImages.tgi=x"],
    "our label": ["labels.app\\.kubernetes\\.io/name=x"],
    "registry with a scheme": ["image.registry=https://registry.example.com/kf"],
    "registry with a space": ["image.registry=registry.example.com/my kf"],
    "registry in uppercase": ["image.registry=registry.example.com/KF"],
    "registry of slashes": ["image.registry=/"],
    "two default images in one": ["providers.kaito.defaultImages.vllm=a\\,llamacpp=b"],
    "engine of another provider": ["providers.kuberay.defaultImages.sglang=x"],
    "label of a role": ["labels.rbac\\.authorization\\.k8s\\.io/aggregate-to-view=x"],
    "label of protection": ["labels.kubefoundry\\.ai/protected=x"],
    "address": ["networkPolicies.webhookFrom={everywhere}"],
    "hosts with a log-in": ["models.noProxy=http://user:pw@p:1"],
    "hosts with a blank": ["models.noProxy=a b"],
    "key of dots": ["models.caBundle=company-ca/.."],
    "long ConfigMap": [f"models.caBundle={'a' * 254}/ca.crt"],
    "long key": [f"models.caBundle=company-ca/{'a' * 254}"],
}
REFUSED_FOR_CRDS: Final = {
    "label of protection for CRDs": ["labels.kubefoundry\\.ai/protected=x"],
    "annotation of keep": ["annotations.helm\\.sh/resource-policy=x"],
}


@pytest.mark.parametrize(
    ("chart", "settings"),
    [
        *(pytest.param(CHART, settings, id=name) for name, settings in REFUSED.items()),
        *(pytest.param(CRD_CHART, settings, id=name) for name, settings in REFUSED_FOR_CRDS.items()),
    ],
)
def test_wrong_value_is_refused_by_the_schema(helm: Helm, chart: Path, settings: list[str]) -> None:
    arguments = [word for setting in settings for word in ("--set", setting)]

    done = helm("template", "x", str(chart), *OLDEST, *arguments, check=False)

    assert done.returncode == 1
    assert "values don't meet the specifications of the schema" in done.stderr, done.stderr


NULLS: Final = (
    "core",
    "core.image.tag",
    "core.certificate.issuer",
    "image",
    "image.registry",
    "providers.kaito",
    "rbac",
)


@pytest.mark.parametrize("path", NULLS)
def test_null_is_refused_by_the_schema(helm: Helm, path: str) -> None:
    done = helm("template", "x", str(CHART), *OLDEST, "--set", f"{path}=null", check=False)

    assert f"missing property '{path.rpartition('.')[2]}'" in done.stderr, done.stderr
