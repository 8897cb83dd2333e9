"""The upstream operators' webhooks, served on loopback and registered with the API server."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from kubefoundry_simulators.admission import dynamo_refusal, kaito_refusal
from kubefoundry_simulators.certificate import self_signed, tls
from kubefoundry_simulators.cluster import APPLY, CRDS, JSON_PATCH, Cluster, Refused
from kubefoundry_simulators.dynamo_conversion import converted
from kubefoundry_simulators.steps import Object

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MANAGER: Final = "kubefoundry-simulators"
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


FAREWELL: Final = 3.0
"""Seconds to remove the registrations at the end, at most."""

WORKSPACES: Final = "workspaces.kaito.sh"
GRAPHS: Final = "dynamographdeployments.nvidia.com"


class Webhooks:
    """The running server.

    Attributes:
        url: Root of its URLs.
        ca: The certificate of its authority (base64 of PEM).
        needs_images: Whether the installed release of Dynamo requires images with a version.
    """

    def __init__(self, cluster: Cluster, runner: web.AppRunner, url: str, ca: str) -> None:
        self._cluster = cluster
        self._runner = runner
        self.url = url
        self.ca = ca
        self.needs_images = False
        self._registered: list[str] = []

    @property
    def conversion_client(self) -> Object:
        """Return the `clientConfig` that sends a CRD's conversions to this server."""
        return {"url": f"{self.url}/convert", "caBundle": self.ca}

    async def register(self, crd: Object) -> None:
        """Register the admission and conversion webhooks of the CRD's operator."""
        name = crd["metadata"]["name"]
        if name not in (WORKSPACES, GRAPHS):
            return
        if name == GRAPHS:
            self.needs_images = "runtimeVersionOverride" in _field_names(crd)
            conversion = crd["spec"].get("conversion") or {}
            if (
                conversion.get("strategy") == "Webhook"
                and conversion["webhook"].get("clientConfig") != self.conversion_client
            ):
                path = "/spec/conversion/webhook/clientConfig"
                patch = [{"op": "replace", "path": path, "value": self.conversion_client}]
                await self._cluster.send("PATCH", f"{CRDS}/{name}", patch, content=JSON_PATCH)
        configuration = _configuration(crd, self.url, self.ca)
        path = f"{CONFIGURATIONS}/{configuration['metadata']['name']}"
        await self._cluster.send("PATCH", path, configuration, content=APPLY, manager=MANAGER)
        if path not in self._registered:
            self._registered.append(path)

    async def close(self) -> None:
        """Remove the registrations, because every write would fail with them. Give up after FAREWELL seconds."""
        try:
            async with asyncio.timeout(FAREWELL):
                for path in self._registered:
                    try:
                        await self._cluster.send("DELETE", path)
                    except Refused as refusal:
                        log.info("%s", refusal)
        except TimeoutError:
            log.warning("registrations are left behind, no answer within %.0f s", FAREWELL)
        await self._runner.cleanup()

    async def validate_workspace(self, request: Object) -> str | None:
        """Return why KAITO refuses the admission request, or None."""
        new, old = request["object"], request.get("oldObject")
        config = (new.get("inference") or {}).get("config")
        config_maps: dict[str, Object] = {}
        if config and (config_map := await self._config_map(request["namespace"], config)):
            config_maps[config] = config_map
        return kaito_refusal(new, old, config_maps)

    async def validate_graph(self, request: Object) -> str | None:
        """Return why Dynamo refuses the admission request, or None."""
        return dynamo_refusal(request["object"], request.get("oldObject"), needs_images=self.needs_images)

    async def _config_map(self, namespace: str, name: str) -> Object | None:
        try:
            return await self._cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise


async def serve(cluster: Cluster) -> Webhooks:
    """Start the server on a free loopback port, with a certificate of its own."""
    certificate, key = self_signed(HOST)
    application = web.Application()
    runner = web.AppRunner(application, access_log=None)
    webhooks = Webhooks(cluster, runner, "", base64.b64encode(certificate).decode())
    application.router.add_post("/convert", _convert)
    application.router.add_post("/validate-workspace", _admission(webhooks.validate_workspace))
    application.router.add_post("/validate-graph", _admission(webhooks.validate_graph))
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=tls(certificate, key))
    await site.start()
    webhooks.url = f"https://{HOST}:{runner.addresses[0][1]}"
    return webhooks


def _admission(refusal: Callable[[Object], Awaitable[str | None]]) -> Callable[[web.Request], Any]:
    async def review(request: web.Request) -> web.Response:
        body = await request.json()
        response: Object = {"uid": body["request"]["uid"], "allowed": True}
        # An operator must always be able to remove its own finalizer.
        if body["request"]["operation"] != "DELETE" and not _deleting(body["request"]["object"]):
            message = await refusal(body["request"])
            if message:
                status = {"code": 400, "reason": "BadRequest", "message": message}
                response |= {"allowed": False, "status": status}
        return web.json_response({**body, "request": None, "response": response})

    return review


def _deleting(object_: Object) -> bool:
    return "deletionTimestamp" in object_["metadata"]


async def _convert(request: web.Request) -> web.Response:
    body = await request.json()
    review = body["request"]
    response: Object = {"uid": review["uid"]}
    try:
        objects = [converted(item, review["desiredAPIVersion"]) for item in review["objects"]]
        response |= {"convertedObjects": objects, "result": {"status": "Success"}}
    except ValueError as error:
        response |= {"result": {"status": "Failure", "message": str(error)}}
    return web.json_response({**body, "request": None, "response": response})


def _configuration(crd: Object, url: str, ca: str) -> Object:
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    path = "validate-workspace" if crd["metadata"]["name"] == WORKSPACES else "validate-graph"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"simulated-{plural}"},
        "webhooks": [
            {
                "name": f"validation.{crd['metadata']['name']}",
                "clientConfig": {"url": f"{url}/{path}", "caBundle": ca},
                "rules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [plural],
                    }
                ],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def _field_names(node: Any) -> set[str]:
    """Return the names of all fields of a schema, at any depth."""
    if isinstance(node, list):
        return set().union(*(_field_names(item) for item in node))
    if not isinstance(node, dict):
        return set()
    own = set(node["properties"]) if isinstance(node.get("properties"), dict) else set()
    return own.union(*(_field_names(value) for value in node.values()))
