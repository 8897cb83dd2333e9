"""Writes children by server-side apply, adopts them from the existing operator, and deletes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack import names, ownership
from kubefoundry_llamastack.memory import Memories
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.runtime import server_side_apply
from kubefoundry_sdk.runtime.refusals import Origin, Refused
from kubefoundry_sdk.runtime.server_side_apply import NameTaken
from kubefoundry_sdk.runtime.store import Key, Store, key_of

ORIGIN: Final = Origin("LlamaStackDistribution", "the ServiceAccount kubefoundry-llamastack")


class Conflict(Exception):
    """An object of a child's name exists that is not ours; the text is for the user."""


@dataclass(slots=True)
class Writer:
    """How children are written."""

    client: Client
    memory: Memories

    async def apply(self, kind: Kind, store: Store, wanted: Object, cr: Distribution, now: float) -> bool:
        """Applies the object if it differs; returns whether something was written.

        Raises Conflict, Refused, or ApiError for transient errors.
        """
        live = self.ours(kind, store, key_of(wanted), cr)
        if live is not None and not ownership.differs(wanted, live):
            return False
        await self.put(kind, store, wanted, live, cr, now)
        return True

    def ours(self, kind: Kind, store: Store, key: Key, cr: Distribution) -> Object | None:
        """The live object of that name, None if there is none. Raises Conflict if it belongs to another."""
        live = store.get(key)
        if live is None:
            return None
        match ownership.ownership(live, cr.uid):
            case "ours":
                return live
            case "leaving":
                raise Conflict(
                    f"{kind.kind} '{key[1]}' of an earlier LlamaStackDistribution is still being deleted"
                )
            case _:
                raise Conflict(_taken(kind, key[1]))

    async def put(
        self,
        kind: Kind,
        store: Store,
        wanted: Object,
        live: Object | None,
        cr: Distribution,
        now: float,
        *,
        exact: bool = False,
    ) -> None:
        """Applies the object. exact: only to that very version of the live one. Raises as `apply`."""
        refusal = self.memory((cr.namespace, cr.name)).refusals[kind.plural, wanted["metadata"]["name"]]
        digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
        if standing := refusal.standing(digest, now):
            raise Refused(standing.text, standing.left, may_pass=standing.passing)
        if live is not None:
            live = await self.take_over(kind, store, live, cr)
        try:
            if live is None:
                answer = await server_side_apply.create(
                    self.client, kind, wanted, manager=MANAGER, origin=ORIGIN
                )
            else:
                body = server_side_apply.pinned(wanted, live, exact=exact)
                answer = await server_side_apply.update(
                    self.client, kind, body, manager=MANAGER, origin=ORIGIN
                )
            _check_label(kind, answer)
        except NameTaken as error:
            # It may be ours, and have lost the label that we watch.
            namespace, name = key_of(wanted)
            found = await self.client.get(kind, name, namespace)
            if ownership.ownership(found, cr.uid) != "ours":
                raise Conflict(_taken(kind, name)) from error
            await self.put(kind, store, wanted, found, cr, now)
            return
        except Refused as refused:
            refused.retry = refusal.remember(digest, now, refused).left
            raise
        refusal.over()
        store.put(answer)

    async def take_over(
        self, kind: Kind, store: Store, live: Object, cr: Distribution, extra: list[Object] | None = None
    ) -> Object:
        """Transfers everything that the existing operator owns of the object to us, without changing its content;
        returns the object. extra: further operations of the same JSON patch."""
        namespace, name = key_of(live)
        if not extra and not ownership.old_entries(live, cr.name):
            return live
        # The store keeps only our own managed fields.
        fresh = await self.client.get(kind, name, namespace)
        managed = ownership.taken_over(fresh, cr.name, kind.api_version)
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
        answer = await self.client.json_patch(kind, name, namespace, operations, manager=MANAGER)
        store.put(json.loads(json.dumps(answer)))
        return answer

    async def delete(self, kind: Kind, store: Store, key: Key, cr: Distribution) -> bool:
        """Deletes a child that is no longer requested; returns whether there was one of ours."""
        live = store.get(key)
        if (
            live is None
            or live["metadata"].get("deletionTimestamp")
            or ownership.ownership(live, cr.uid) != "ours"
        ):
            return False
        await server_side_apply.delete(self.client, kind, live)
        return True


def _taken(kind: Kind, name: str) -> str:
    return (
        f"{kind.kind} '{name}' already exists and belongs to someone else; "
        "delete it or rename the LlamaStackDistribution"
    )


def _check_label(kind: Kind, stored: Object) -> None:
    """Raises Refused if the API server stored the object without the label by which we watch: it would never be seen
    again, and be written at each reconcile."""
    if (stored["metadata"].get("labels") or {}).get(names.MANAGED_BY_LABEL) != names.MANAGED_BY:
        raise Refused(
            f"{kind.kind} '{stored['metadata']['name']}' was accepted, but label {names.MANAGED_BY_LABEL} was not "
            "stored as sent: an admission webhook or policy changes it; exempt objects with the label "
            f"{names.WATCH_LABEL} from that"
        )
