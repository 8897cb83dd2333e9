"""Writes children by server-side apply, adopts them from the existing operator, and deletes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from kubefoundry_llamastack import names, ownership
from kubefoundry_llamastack.memory import Memories
from kubefoundry_llamastack.names import LLSD, MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime import server_side_apply
from kubefoundry_sdk._runtime.refusals import Origin, Refused, refused
from kubefoundry_sdk._runtime.server_side_apply import NameTaken
from kubefoundry_sdk._runtime.store import Key, Store, key_of

ORIGIN: Final = Origin("LlamaStackDistribution", "the ServiceAccount kubefoundry-llamastack")


class Conflict(Exception):
    """A foreign object has the name of a child. The text is for the user."""


@dataclass(slots=True)
class Writer:
    """Writes and deletes children."""

    client: Client
    memory: Memories

    async def apply(self, kind: Kind, store: Store, manifest: Object, cr: Distribution, now: float) -> bool:
        """Apply the object if it differs. Return whether it was written.

        Raises:
            Conflict: The name belongs to another object.
            Refused: The API server rejects the object.
            ApiError: A transient error.
        """
        live = self.ours(kind, store, key_of(manifest), cr)
        if kind == names.CLAIMS and live is not None and ownership.controller_of(live) is None:
            # The operator may not delete claims, so the API server refuses to restore the owner.
            manifest = ownership.without_owners(manifest)
        if live is not None and not ownership.differs(manifest, live):
            return False
        await self.put(kind, store, manifest, live, cr, now)
        return True

    def ours(self, kind: Kind, store: Store, key: Key, cr: Distribution) -> Object | None:
        """Return the live object of that name, None if there is none.

        Raises:
            Conflict: It belongs to another owner.
        """
        live = store.get(key)
        if live is None:
            return None
        return _checked(kind, live, cr)

    async def put(
        self,
        kind: Kind,
        store: Store,
        manifest: Object,
        live: Object | None,
        cr: Distribution,
        now: float,
        *,
        exact: bool = False,
    ) -> None:
        """Apply the object.

        Args:
            kind: Its kind.
            store: The store that watches the kind.
            manifest: The object to apply.
            live: The live object, None if there is none.
            cr: The owner.
            now: Monotonic time in seconds.
            exact: Whether to apply only to the version of `live`.

        Raises:
            Conflict, Refused, ApiError: As for `apply`.
        """
        refusal = self.memory((cr.namespace, cr.name)).refusals[kind.plural, manifest["metadata"]["name"]]
        digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        if previous := refusal.pending(digest, now):
            raise Refused(previous.text, previous.left, may_pass=previous.is_transient)
        try:
            if live is not None:
                live = await self.take_over(kind, store, live, cr)
            stored = await self._send(kind, manifest, live, exact=exact)
            _check_label(kind, stored)
        except NameTaken:
            # It may be ours, but have lost the label that we watch.
            namespace, name = key_of(manifest)
            existing = await self.client.get(kind, name, namespace)
            await self.put(kind, store, manifest, _checked(kind, existing, cr), cr, now)
            return
        except Refused as error:
            error.retry = refusal.remember(digest, now, error).left
            raise
        refusal.reset()
        store.put(stored)

    async def _send(self, kind: Kind, manifest: Object, live: Object | None, *, exact: bool) -> Object:
        if live is None:
            return await server_side_apply.create(self.client, kind, manifest, manager=MANAGER, origin=ORIGIN)
        body = server_side_apply.pinned(manifest, live, exact=exact)
        return await server_side_apply.update(self.client, kind, body, manager=MANAGER, origin=ORIGIN)

    async def take_over(
        self, kind: Kind, store: Store, live: Object, cr: Distribution, extra: list[Object] | None = None
    ) -> Object:
        """Transfer the existing operator's fields of the object to us, without changing its content.

        Args:
            kind: Its kind.
            store: The store that watches the kind.
            live: The live object.
            cr: The owner.
            extra: Further operations of the same JSON patch.

        Returns:
            The object after the transfer.

        Raises:
            Refused: The operator lacks a permission, or a policy forbids the transfer.
            ApiError: A transient error.
        """
        namespace, name = key_of(live)
        if not extra and not ownership.old_entries(live, cr.name):
            return live
        # The store keeps only our own managed fields.
        fresh = await self.client.get(kind, name, namespace)
        managed = ownership.transfer_ownership(fresh, cr.name, kind.api_version)
        operations: list[Object] = [
            {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": fresh["metadata"]["resourceVersion"],
            },
            *(extra or ()),
            {"op": "replace", "path": "/metadata/managedFields", "value": managed},
        ]
        try:
            patched = await self.client.json_patch(kind, name, namespace, operations, manager=MANAGER)
        except ApiError as error:
            # A failed `test` operation is no 403: the object has changed, and the next event decides again.
            if error.code == HTTPStatus.FORBIDDEN:
                raise refused(kind, name, error, ORIGIN) from error
            raise
        store.put(json.loads(json.dumps(patched)))
        return patched

    async def delete(self, kind: Kind, store: Store, key: Key, cr: Distribution) -> bool:
        """Delete a child that is no longer requested. Return whether there was one of ours."""
        live = store.get(key)
        if (
            live is None
            or live["metadata"].get("deletionTimestamp")
            or ownership.ownership(live, cr.uid) != "ours"
        ):
            return False
        await server_side_apply.delete(self.client, kind, live)
        return True


def _checked(kind: Kind, live: Object, cr: Distribution) -> Object:
    """Return the live object if it is ours. Raise Conflict if not."""
    name, other = live["metadata"]["name"], _other_owner(live, cr)
    match ownership.ownership(live, cr.uid):
        case "ours" if not other:
            return live
        case "leaving" if not other:
            raise Conflict(
                f"{kind.kind} '{name}' of an earlier LlamaStackDistribution is still being deleted"
            )
    remedy = "delete it or rename the LlamaStackDistribution"
    if other:
        # Its owner would create it again.
        remedy = (
            "rename the LlamaStackDistribution, or the provider if it is an object of a provider's service"
        )
    raise Conflict(f"{kind.kind} '{name}' already exists and belongs to {other or 'someone else'}; {remedy}")


def _other_owner(live: Object, cr: Distribution) -> str:
    """Return the other object that owns the live one, empty without any.

    The names of two CRs and their providers may join to one name. Then an object of a service that has lost its owner
    reference is the one of the CR in its label.
    """
    of_service: Object = {
        "kind": LLSD.kind,
        "name": (live["metadata"].get("labels") or {}).get(names.LLSD_LABEL),
    }
    owner = ownership.controller_of(live) or of_service
    return "" if owner.get("name") in (None, cr.name) else f"{owner.get('kind')} '{owner['name']}'"


def _check_label(kind: Kind, stored: Object) -> None:
    """Raise Refused if the API server stored the object without the label by which we watch it.

    The watch would never deliver the object, and each reconcile would write it again.
    """
    if (stored["metadata"].get("labels") or {}).get(names.MANAGED_BY_LABEL) != names.MANAGED_BY:
        raise Refused(
            f"{kind.kind} '{stored['metadata']['name']}' was accepted, but label {names.MANAGED_BY_LABEL} was not "
            "stored as sent: an admission webhook or policy changes it; exempt objects with the label "
            f"{names.WATCH_LABEL} from that"
        )
