"""Dry runs of creating ModelDeployments, and CRDs of older releases."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import yaml

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import ROOT, ControlPlane
from kubefoundry_local.suite import PROBE
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployments import CPU, model_deployment
from support.refused_specs import REFUSED, changed
from support.waiting import SECONDS

BY_WEBHOOK = 'admission webhook "validate.modeldeployments.kubefoundry.ai" denied the request: '
"""The beginning of the API server's message if the webhook refuses."""


REFUSED_BY_WEBHOOK = changed(CPU, engine__contextLength=8192, engine__args={"ctx-size": "4096"})
"""A spec that only the webhook refuses: without its answer, the API server stores it."""


async def refusal(api: Client, namespace: str, spec: dict[str, Any]) -> str:
    """Return the message that refuses the creation of a ModelDeployment `m`, or empty text if it is accepted."""
    body = model_deployment("m", namespace, spec)
    try:
        await api.create(MODEL_DEPLOYMENTS, body, manager="test", dry_run=True)
    except ApiError as error:
        assert (error.code, error.reason) == (422, "Invalid")
        return error.message
    return ""


async def until_refused_by_webhook(
    api: Client, namespace: str, spec: dict[str, Any] = REFUSED_BY_WEBHOOK
) -> None:
    """Wait until the webhook refuses the spec. The API server learns of new webhooks by a watch."""
    async with asyncio.timeout(SECONDS):
        while True:
            if (await refusal(api, namespace, spec)).startswith(BY_WEBHOOK):
                return
            await asyncio.sleep(PROBE)


def dry_runs(plane: ControlPlane, namespace: str, specs: list[Any]) -> list[str | Object]:
    """Create all specs in one dry run, and return for each the object or the text of the error."""
    objects = [model_deployment(f"d{index}", namespace, spec) for index, spec in enumerate(specs)]
    listing = {"apiVersion": "v1", "kind": "List", "items": objects}
    result = plane.kubectl(
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
        match[1]: match[0]
        for error in result.stderr.split("Error from server")
        if (match := re.search(r'"(d\d+)" is invalid: .*', error, re.DOTALL))
    }
    decoder, created, rest = json.JSONDecoder(), {}, result.stdout.lstrip()
    while rest:
        value, end = decoder.raw_decode(rest)
        for item in value.get("items", [value]):
            created[item["metadata"]["name"]] = item
        rest = rest[end:].lstrip()
    assert created.keys() | errors.keys() == {item["metadata"]["name"] for item in objects}, result.stderr
    return [errors.get(item["metadata"]["name"]) or created[item["metadata"]["name"]] for item in objects]


async def install_crd_without(plane: ControlPlane, api: Client, *keywords: str) -> None:
    """Install the CRD of ModelDeployments without rules and without these keywords of its schema."""
    apply(plane, [_without(crd_of_deployments(), {"x-kubernetes-validations", *keywords})])
    await _until_rules(api, enforced=False)


async def install_crd(plane: ControlPlane, api: Client) -> None:
    """Install the CRD of ModelDeployments."""
    apply(plane, [crd_of_deployments()])
    await _until_rules(api, enforced=True)


def crd_of_deployments() -> Any:
    return yaml.safe_load((ROOT / "crds" / "modeldeployments.yaml").read_text())


def _without(schema: Any, keywords: set[str]) -> Any:
    if isinstance(schema, dict):
        return {key: _without(value, keywords) for key, value in schema.items() if key not in keywords}
    return [_without(item, keywords) for item in schema] if isinstance(schema, list) else schema


async def _until_rules(api: Client, *, enforced: bool) -> None:
    """Wait until a changed CRD is in force. This takes a moment, and its status does not show it."""
    async with asyncio.timeout(SECONDS):
        while True:
            reported = await refusal(api, "default", REFUSED[0].spec)
            if enforced == (REFUSED[0].message in reported and not reported.startswith(BY_WEBHOOK)):
                return
            await asyncio.sleep(PROBE)
