"""A ModelDeployment as it was read or written last, and every write on it that is a provider's (contract §10)."""

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

    async def write(self, wanted: Object) -> bool:
        """Makes these the status fields that we own; no request where they are. {} gives all up."""
        status = dict(wanted)
        if "conditions" in wanted:
            before = (self.live.get("status") or {}).get("conditions", [])
            status["conditions"] = stamped(wanted["conditions"], before)
        if same(status, owned(self.live, MANAGER)):
            return False
        meta = {key: self.live["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        body = {**KIND, "metadata": meta, **({"status": status} if status else {})}
        self.live = await self.api.apply(f"{self.path}/status", body)
        return True

    async def own(self, *, hold: bool, result: str | None = None) -> None:
        """Finalizer and dry-run result: all that is ours of the object itself; no request where it is so."""
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
        """Never in the way of the rest: an Event that is refused is dropped."""
        meta = self.live["metadata"]
        about = {**KIND, **{name: meta[name] for name in ("name", "namespace", "uid")}}
        moment = now().replace("Z", ".000000Z")
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{meta['name'][:200].rstrip('-.')}-",
                "namespace": meta["namespace"],
            },
            "regarding": about,
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
        """Finalizers of other providers: each may have something that serves."""
        names = self.live["metadata"].get("finalizers") or ()
        ours = [name for name in names if name.startswith("kubefoundry.ai/") and name.endswith("-provider")]
        return [name for name in ours if name != FINALIZER]

    @property
    def answered(self) -> bool:
        """Whether the result of a dry run that is there is ours."""
        entries = self.live["metadata"].get("managedFields") or ()
        fields = [
            one["fieldsV1"] for one in entries if one.get("manager") == MANAGER and not one.get("subresource")
        ]
        return any("f:annotations" in one.get("f:metadata", {}) for one in fields)

    @property
    def valid(self) -> bool:
        generation = self.live["metadata"]["generation"]
        return any(
            item["type"] == "Validated"
            and item["status"] == "True"
            and item.get("observedGeneration") == generation
            for item in (self.live.get("status") or {}).get("conditions") or ()
        )
