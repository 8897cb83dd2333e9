"""A ModelDeployment as last read or written, and all writes of a provider to it (contract §10)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

import widget
from api_server import Api, Object, Refused
from report import now, owned, same, stamped

log = logging.getLogger(__name__)
NAME: Final = "plain"
MANAGER: Final = f"{NAME}-provider"
FINALIZER: Final = f"kubefoundry.ai/{MANAGER}"
KIND: Final = {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment"}


@dataclass(slots=True)
class ModelDeployment:
    api: Api
    live: Object

    @property
    def path(self) -> str:
        meta = self.live["metadata"]
        return f"/apis/{KIND['apiVersion']}/namespaces/{meta['namespace']}/modeldeployments/{meta['name']}"

    @property
    def widget_path(self) -> str:
        meta = self.live["metadata"]
        return f"/apis/{widget.API_VERSION}/namespaces/{meta['namespace']}/widgets/{meta['name']}"

    async def write(self, fields: Object) -> bool:
        """Apply status fields unless they are unchanged. An empty object releases all fields."""
        status = dict(fields)
        if "conditions" in fields:
            before = (self.live.get("status") or {}).get("conditions", [])
            status["conditions"] = stamped(fields["conditions"], before)
        if same(status, owned(self.live, MANAGER)):
            return False
        meta = {key: self.live["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        body = {**KIND, "metadata": meta, **({"status": status} if status else {})}
        self.live = await self.api.apply(f"{self.path}/status", body)
        return True

    async def own(self, *, hold: bool, result: str | None = None) -> None:
        """Apply finalizer and dry-run result, unless they are unchanged."""
        key = "kubefoundry.ai/dry-run-result"
        if hold == self.held and (
            self.annotation("dry-run-result") == result or (result is None and not self.answered)
        ):
            return
        meta: Object = {name: self.live["metadata"][name] for name in ("name", "namespace", "uid")}
        meta |= {"finalizers": [FINALIZER]} if hold else {}
        meta |= {"annotations": {key: result}} if result is not None else {}
        self.live = await self.api.apply(self.path, {**KIND, "metadata": meta})

    async def unhold(self) -> None:
        meta = self.live["metadata"]
        at = f"/metadata/finalizers/{meta['finalizers'].index(FINALIZER)}"
        change: list[Object] = [
            {"op": "test", "path": f"/metadata/{name}", "value": meta[name]}
            for name in ("uid", "resourceVersion")
        ]
        await self.api.patch(self.path, [*change, {"op": "remove", "path": at}])

    async def event(self, kind: str, reason: str, note: str) -> None:
        """Create an Event. A refused Event is dropped, because Events must not block the rest."""
        meta = self.live["metadata"]
        regarding = {**KIND, **{name: meta[name] for name in ("name", "namespace", "uid")}}
        moment = now().replace("Z", ".000000Z")
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{meta['name'][:200].rstrip('-.')}-",
                "namespace": meta["namespace"],
            },
            "regarding": regarding,
            "type": kind,
            "reason": reason,
            "action": reason,
            "note": note.encode()[:1024].decode(errors="ignore"),
            "eventTime": moment,
            "reportingController": f"kubefoundry.ai/{MANAGER}",
            "reportingInstance": MANAGER,
        }
        try:
            await self.api.call("POST", f"/apis/events.k8s.io/v1/namespaces/{meta['namespace']}/events", body)
        except Refused as error:
            log.warning("Event %s of %s: %s", reason, meta["name"], error)

    def annotation(self, name: str) -> str | None:
        return (self.live["metadata"].get("annotations") or {}).get(f"kubefoundry.ai/{name}")

    @property
    def held(self) -> bool:
        return FINALIZER in (self.live["metadata"].get("finalizers") or ())

    @property
    def other_holders(self) -> list[str]:
        """Finalizers of other providers, each of which may still serve the model."""
        names = self.live["metadata"].get("finalizers") or ()
        ours = [name for name in names if name.startswith("kubefoundry.ai/") and name.endswith("-provider")]
        return [name for name in ours if name != FINALIZER]

    @property
    def answered(self) -> bool:
        """Whether this provider wrote the existing dry-run result."""
        entries = self.live["metadata"].get("managedFields") or ()
        owned_fields = [
            entry["fieldsV1"]
            for entry in entries
            if entry.get("manager") == MANAGER and not entry.get("subresource")
        ]
        return any("f:annotations" in fields.get("f:metadata", {}) for fields in owned_fields)

    @property
    def valid(self) -> bool:
        """Whether core has validated the current generation."""
        generation = self.live["metadata"]["generation"]
        return any(
            item["type"] == "Validated"
            and item["status"] == "True"
            and item.get("observedGeneration") == generation
            for item in (self.live.get("status") or {}).get("conditions") or ()
        )
