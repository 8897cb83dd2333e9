"""A mapping on a real API server: a model that exhausts it, and the conformance kit."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from examples.test_conformance import WIDGETS as KIT_FILES
from examples.test_conformance import check
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._functions.main import installed, mapped
from support.kit_planes import kept_planes
from support.waiting import message, reason, serves, until, until_deployment
from support.widgets import FUNCTIONS, MAPPING, WIDGETS, create, says, start, without_code

pytestmark = [pytest.mark.integration]


async def test_model_that_exhausts_a_mapping_harms_no_other(
    fresh: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "mapping.yaml"
    exploding = "${spec.env.map(a, spec.env.map(b, a.name == b.name))[0][0] ? spec.env : omit}"
    file.write_text(MAPPING.read_text().replace("env: ${spec.env}", f'env: "{exploding}"'))
    start(fresh, without_code(file))

    await create(api, namespace, "large", env=[{"name": f"A{n}", "value": "x"} for n in range(200)])
    await create(api, namespace, env=[{"name": "A", "value": "x"}])

    failed = await until_deployment(
        api, "large", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    assert message(failed, "ResourceCreated") == (
        "Provider widgets has an error: object.spec.env: it takes more than 5000 steps; report it to its authors, "
        "its log has more"
    )
    await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    await says(api, namespace, state="Serving", ready=1)
    assert await until_deployment(api, "m", namespace, serves)


@pytest.mark.apart
def test_provider_without_code_passes_the_kit(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(installed(mapped(MAPPING, {}), "reg/img:1", [], str(MAPPING))))
    subject = ["--manifest", str(file), "--command", f"{FUNCTIONS} --mapping {MAPPING}"]

    with kept_planes():
        code, failed, passed = check(["provider", *subject, *KIT_FILES], tmp_path / "report.json")

    assert (code, failed) == (0, [])
    assert passed >= 22
