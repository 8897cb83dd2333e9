"""What the API server says to the creation of a ModelDeployment, and CRDs as an older release had them."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import yaml

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import ROOT, ControlPlane
from kubefoundry_local.suite import PROBE
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError
from support.deployments import model_deployment
from support.refused_specs import REFUSED
from support.waiting import SECONDS

BY_WEBHOOK = 'admission webhook "validate.modeldeployments.kubefoundry.ai" denied the request: '
"""How the API server begins a refusal that is the webhook's."""


async def refusal(api: Client, namespace: str, spec: dict[str, Any]) -> str:
    """The words with which the creation of a ModelDeployment `m` is refused, empty when it would be taken."""
    body = model_deployment("m", namespace, spec)
    try:
        await api.create(MODEL_DEPLOYMENTS, body, manager="test", dry_run=True)
    except ApiError as error:
        assert (error.code, error.reason) == (422, "Invalid")
        return error.message
    return ""


async def until_refused_by_webhook(api: Client, namespace: str, spec: dict[str, Any]) -> None:
    """Returns once the API server asks the webhook about such a spec: it hears of webhooks in its own time."""
    async with asyncio.timeout(SECONDS):
        while True:
            if (await refusal(api, namespace, spec)).startswith(BY_WEBHOOK):
                return
            await asyncio.sleep(PROBE)


def dry_runs(plane: ControlPlane, namespace: str, specs: list[Any]) -> list[str | Object]:
    """For each spec what a dry run of its creation gives, the object or the error's text; all in one call."""
    objects = [model_deployment(f"d{index}", namespace, spec) for index, spec in enumerate(specs)]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    answer = plane.kubectl(
        "create",
        "--dry-run=server",
        "--validate=ignore",
        "-o",
        "json",
        "-f",
        "-",
        input=json.dumps(listing),
        check=False,
    )
    errors = {
        found[1]: found[0]
        for error in answer.stderr.split("Error from server")
        if (found := re.search(r'"(d\d+)" is invalid: .*', error, re.DOTALL))
    }
    decoder, created, rest = json.JSONDecoder(), {}, answer.stdout.lstrip()
    while rest:
        value, end = decoder.raw_decode(rest)
        for item in value.get("items", [value]):
            created[item["metadata"]["name"]] = item
        rest = rest[end:].lstrip()
    assert created.keys() | errors.keys() == {item["metadata"]["name"] for item in objects}, answer.stderr
    return [errors.get(item["metadata"]["name"]) or created[item["metadata"]["name"]] for item in objects]


async def install_crd_without(plane: ControlPlane, api: Client, *keywords: str) -> None:
    """Puts the CRD of ModelDeployments in place without these keywords of its schema, rules among them."""
    apply(plane, [_without(_crd(), {"x-kubernetes-validations", *keywords})])
    await _until_rules(api, there=False)


async def install_crd(plane: ControlPlane, api: Client) -> None:
    """Puts the CRD of ModelDeployments in place as it is."""
    apply(plane, [_crd()])
    await _until_rules(api, there=True)


def _crd() -> Any:
    return yaml.safe_load((ROOT / "crds" / "modeldeployments.yaml").read_text())


def _without(schema: Any, keywords: set[str]) -> Any:
    if isinstance(schema, dict):
        return {key: _without(value, keywords) for key, value in schema.items() if key not in keywords}
    return [_without(item, keywords) for item in schema] if isinstance(schema, list) else schema


async def _until_rules(api: Client, *, there: bool) -> None:
    """A changed CRD is obeyed a moment after it is stored, and nothing of its status tells when."""
    async with asyncio.timeout(SECONDS):
        while True:
            reported = await refusal(api, "default", REFUSED[0].spec)
            if there == (REFUSED[0].message in reported and not reported.startswith(BY_WEBHOOK)):
                return
            await asyncio.sleep(PROBE)
