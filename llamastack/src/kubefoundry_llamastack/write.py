"""Writing children by server-side apply, taking them over from the existing operator, deleting them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_llamastack import ownership
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider.write.apply import ABSENT, RETRY, Refusal, Refused
from kubefoundry_sdk.runtime.store import Key, Store, key_of

REMEDIES: Final = (
    ("admission webhook", "change the LlamaStackDistribution or contact the owner of that policy"),
    ("AdmissionPolicy", "change the LlamaStackDistribution or contact the owner of that policy"),
    ("exceeded quota", "request less or have the quota raised"),
    ("being terminated", "the namespace is being deleted"),
    (" cannot ", "grant the ServiceAccount kubefoundry-llamastack that permission"),
)
"""What the words of a 403 tell, in this order: a policy may say anything in its own."""


class Conflict(Exception):
    """An object of a child's name exists that is not ours; the text is for the user."""


@dataclass(slots=True)
class Writer:
    """How children are written. `refusals`: what was refused is not tried again at every event."""

    client: Client
    refusals: dict[Key, Refusal] = field(default_factory=dict)

    async def apply(self, kind: Kind, store: Store, wanted: Object, cr: Distribution, now: float) -> bool:
        """Makes the object so, unless it is; whether something was written.

        Raises Conflict, Refused, or ApiError for what passes by itself.
        """
        live = self.ours(kind, store, key_of(wanted), cr)
        if live is not None and not ownership.differs(wanted, live):
            return False
        await self.put(kind, store, wanted, live, cr, now)
        return True

    def ours(self, kind: Kind, store: Store, key: Key, cr: Distribution) -> Object | None:
        """The live object of that name, None where there is none. Raises Conflict where it is another's."""
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
        mark = (f"{kind.plural}/{wanted['metadata']['namespace']}", wanted["metadata"]["name"])
        digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
        before = self.refusals.get(mark)
        if before and (standing := before.standing(digest, now)):
            raise Refused(*standing)
        if live is not None:
            live = await self.take_over(kind, store, live, cr)
        meta = dict(wanted["metadata"])
        if live is None:
            # Without it an apply would merge into another's object that has come meanwhile.
            meta["resourceVersion"] = ABSENT
        else:
            meta["uid"] = live["metadata"]["uid"]
            if exact:
                meta["resourceVersion"] = live["metadata"]["resourceVersion"]
        try:
            answer = await self.client.apply(
                kind, {**wanted, "metadata": meta}, manager=MANAGER, force=live is not None
            )
        except ApiError as error:
            if live is None and error.conflict:
                # It may be ours, and have lost the label that we watch by.
                found = await self.client.get(kind, meta["name"], meta["namespace"])
                if ownership.ownership(found, cr.uid) == "ours":
                    await self.put(kind, store, wanted, found, cr, now)
                    return
                raise Conflict(_taken(kind, meta["name"])) from error
            if error.rejected:
                refused = Refused(refusal(kind, wanted["metadata"]["name"], error), RETRY)
                self.refusals.setdefault(mark, Refusal()).remember(digest, now, refused)
                raise refused from error
            raise
        self.refusals.pop(mark, None)
        store.put(answer)

    async def take_over(
        self, kind: Kind, store: Store, live: Object, cr: Distribution, extra: list[Object] | None = None
    ) -> Object:
        """Makes all that the existing operator owns of the object ours, without a change of its content; the object
        then. extra: further operations of the same JSON patch."""
        namespace, name = key_of(live)
        if not extra and not ownership.old_entries(live, cr.name):
            return live
        # What the store keeps of managed fields is ours alone.
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
        """Deletes a child that is no longer requested; whether there was one of ours."""
        live = store.get(key)
        if (
            live is None
            or live["metadata"].get("deletionTimestamp")
            or ownership.ownership(live, cr.uid) != "ours"
        ):
            return False
        try:
            await self.client.delete(kind, key[1], key[0], uid=live["metadata"]["uid"])
        except ApiError as error:
            if not error.not_found:
                raise
        return True


def _taken(kind: Kind, name: str) -> str:
    return (
        f"{kind.kind} '{name}' exists already and belongs to somebody else; "
        "delete it or rename the LlamaStackDistribution"
    )


def refusal(kind: Kind, name: str, error: ApiError) -> str:
    """What was refused, in the server's own words, and what to do."""
    remedy = "change the LlamaStackDistribution accordingly"
    if error.code == 403:
        remedy = next(
            (todo for mark, todo in REMEDIES if mark in error.message),
            "change the LlamaStackDistribution or contact the cluster's administrator",
        )
    return f"{kind.kind} '{name}' was refused: {error.message}; {remedy}"
