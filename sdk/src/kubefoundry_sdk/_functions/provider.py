"""A `Provider` whose functions are those of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._functions import messages
from kubefoundry_sdk._functions.client import Client
from kubefoundry_sdk._functions.description import provider_of
from kubefoundry_sdk._provider.contract import (
    Deployment,
    NotReadable,
    Observation,
    Provider,
    Rendered,
)
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema


def provider(client: Client) -> Provider:
    """Return the provider that the program describes. Raise Fault if it does not start, or does not describe one."""
    description = client.describe()
    functions = _Functions(client)
    optional = description.functions
    built = provider_of(description, functions.supports, functions.render, functions.observe)
    return replace(
        built,
        probe=functions.probe if "probe" in optional else built.probe,
        recreate=functions.recreate if "recreate" in optional else built.recreate,
        contract=description.contract,
        edits_recreate=description.edits_recreate,
        must_recreate=functions.must_recreate if "mustRecreate" in optional else built.must_recreate,
        helper_kinds=description.helper_kinds,
        read_back=functions.read_back if "readBack" in optional else None,
        blocking=True,
    )


@dataclass(frozen=True)
class _Functions:
    client: Client

    def probe(self, crd: Object) -> Schema | UnsupportedSchema:
        result: Schema | UnsupportedSchema
        try:
            result = self.client.call("probe", crd=crd)
        except Fault:
            # The next call would come with the next change of the CRD. A program that was just killed works again.
            result = self.client.call("probe", crd=crd)
        return result

    def supports(self, deployment: Deployment, schema: Schema | None) -> Sequence[str]:
        result: Sequence[str] = self.client.call(
            "supports", deployment=messages.deployment(deployment), schema=messages.schema(schema)
        )
        return result

    def render(self, deployment: Deployment, schema: Schema) -> Rendered:
        result: Rendered = self.client.call(
            "render", deployment=messages.deployment(deployment), schema=messages.schema(schema)
        )
        return result

    def observe(self, deployment: Deployment, upstream: Object) -> Observation:
        result: Observation = self.client.call(
            "observe", deployment=messages.deployment(deployment), object=upstream
        )
        return result

    def recreate(self, old: Rendered, new: Rendered) -> str | None:
        result: str | None = self.client.call(
            "recreate", old=messages.rendered(old), new=messages.rendered(new)
        )
        return result

    def must_recreate(self, live: Object) -> bool:
        result: bool = self.client.call("mustRecreate", object=live)
        return result

    def read_back(self, live: Object, helpers: Sequence[Object]) -> Sequence[Object]:
        result: messages.ReadBack = self.client.call("readBack", object=live, helpers=list(helpers))
        if result.not_readable:
            raise NotReadable(result.not_readable)
        return result.specs
