"""Upstream objects as `kubefoundry eject` leaves them, for `kubefoundry import`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kubefoundry_cli import adoption, upstream
from kubefoundry_cli.model import valid
from kubefoundry_cli.providers import probed
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write.plan import plan
from support.upstream import standin


def schema_of(provider: Provider) -> Schema:
    return provider.upstream.schema or probed(provider, standin(provider.name).document)


def left_behind(
    provider: Provider, schema: Schema, spec: dict[str, Any], written: Callable[[Any], Any] = lambda obj: obj
) -> tuple[Object, list[Object]]:
    """The upstream objects of that spec as an eject leaves them, main object first."""
    blank = {"metadata": {"name": "m", "namespace": "models"}, "kind": provider.upstream.kind}
    obj = valid(adoption.model(blank, spec))
    deployment = read(obj)
    rendered = upstream.rendered(provider, obj, schema)
    todo = plan(provider, deployment, schema, rendered, None, [])
    found = []
    for dressed, bare in zip([todo.main, *todo.helpers], [rendered.main, *rendered.helpers], strict=True):
        meta = {"name": dressed["metadata"]["name"], "namespace": "models"}
        meta |= {
            part: bare["metadata"][part] for part in ("labels", "annotations") if part in bare["metadata"]
        }
        found.append(written(copy.deepcopy({**dressed, "metadata": meta})))
    return found[0], found[1:]
