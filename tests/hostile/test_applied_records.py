"""Records of what was applied, and the objects that agree with them, in which any one part is missing or something
else: an edit is planned, or refused in the provider's own words, and never an internal error.

A user with `edit` in a namespace can write both.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kaito.provider import provider as kaito
from kubefoundry_kaito.settings import Settings as KaitoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.manifest import Record
from kubefoundry_sdk._provider.write.plan import plan
from kubefoundry_sdk.testing.generated import deployment
from support.hostile_json import places

MISSING: Final = object()
ODD: Final[tuple[Any, ...]] = (
    *(MISSING, None, 0, -1, 1.5, True, "", "x", [], {}, [1], [[]], [{}], [None], {"": None}, 10**30),
    *([{"name": [1]}], [{"name": {}}], [{"name": None}], [{"name": "a"}, {"name": "a"}], {"name": ["x"]}),
    *("vllm: {x: !!bool x}", "vllm: {x: 0x" + "f" * 5000 + "}", "vllm: !!set {a}", "[" * 40),
)
STRIDE: Final = 13
"""Coprime with the number of ways in which one part is spoilt, so that each way comes to some of the parts: a number
that divides it would spoil all parts in the same few ways."""
assert math.gcd(STRIDE, 2 * len(ODD)) == 1

SUBJECTS: Final[dict[str, tuple[Provider, Schema, dict[str, Any]]]] = {
    "kaito": (
        kaito(KaitoSettings()),
        Schema("kaito.sh/v1beta1", frozenset({"inference.config", "status.state"})),
        {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm", "trustRemoteCode": True}},
    ),
    "dynamo": (dynamo(DynamoSettings()), Schema("nvidia.com/v1beta1", frozenset({"v1beta1"})), {}),
    "dynamo, the old CRD": (dynamo(DynamoSettings()), Schema("nvidia.com/v1alpha1"), {}),
    "kuberay": (kuberay(KubeRaySettings()), Schema("ray.io/v1", frozenset({"suspend"})), {}),
    "direct": (direct(DirectSettings()), Schema("apps/v1"), {}),
}
EDITS: Final[dict[str, dict[str, Any]]] = {
    "engine.args": {"engine": {"type": "vllm", "trustRemoteCode": True, "args": {"max-num-seqs": "7"}}},
    "contextLength": {"engine": {"type": "vllm", "trustRemoteCode": True, "contextLength": 512}},
    "image": {"image": "example.com/other:9"},
    "nothing": {},
}


def asked(name: str, change: dict[str, Any], **meta: Any) -> Deployment:
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm"},
        "resources": {"gpu": {"count": 1}},
        **SUBJECTS[name][2],
        **change,
    }
    return replace(deployment(spec, **meta), raw_spec=spec)


def standing(obj: Object) -> Object:
    """As the API server has it."""
    found = copy.deepcopy(obj)
    found["metadata"] |= {"uid": f"uid-{obj['kind']}", "generation": 1, "resourceVersion": "5"}
    return found


def spoilt(value: Any, path: tuple[str | int, ...], odd: Any) -> Any:
    """A copy with that part missing or something else."""
    made = copy.deepcopy(value)
    place = made
    for step in path[:-1]:
        place = place[step]
    if odd is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = odd
    return made


def parts(value: Any) -> Iterator[tuple[str | int, ...]]:
    """What a user may change of an object that its kind, name and owner still make ours."""
    fixed = {("apiVersion",), ("kind",), ("metadata",)}
    return (path for path in places(value) if path and path not in fixed and path[:2] != ("metadata", "name"))


def tampered(obj: Object, path: tuple[str | int, ...], odd: Any, *, agree: bool) -> Object:
    """The live object with that part of its record spoilt; agree: and of itself."""
    record = manifest.applied(obj)
    assert record is not None
    live = spoilt(obj, path, odd) if agree and path[0] != "metadata" else copy.deepcopy(obj)
    forged = Record(spoilt(record.manifest, path, odd), record.spec, record.refresh, record.image)
    live["metadata"]["annotations"][names.APPLIED_ANNOTATION] = manifest.pack(forged)
    return live


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_edit_is_planned_or_refused(name: str, edit: str) -> None:
    provider, schema, _ = SUBJECTS[name]
    before = asked(name, {})
    first = plan(provider, before, schema, results.render(provider, before, schema), None, [])
    main, helpers = standing(first.main), [standing(helper) for helper in first.helpers]
    notes = {names.REFRESH_ANNOTATION: "1"} if edit == "nothing" else {}
    wanted = asked(name, EDITS[edit], generation=2, annotations=notes)
    tried = 0

    for number, obj in enumerate((main, *helpers)):
        found = manifest.applied(obj)
        assert found is not None
        everything = itertools.product(parts(found.manifest), ODD, (True, False))
        # one in STRIDE, a different one in each of the four edits' runs
        for path, odd, agree in itertools.islice(everything, len(edit) % STRIDE, None, STRIDE):
            live = tampered(obj, path, odd, agree=agree)
            others = [live if index == number else helper for index, helper in enumerate(helpers, start=1)]
            kept = live if number == 0 else main
            pinned_to_it = pinned(wanted, manifest.applied(kept))
            if results.supports(provider, pinned_to_it, schema):
                continue
            rendered = results.render(provider, pinned_to_it, schema)
            todo = plan(provider, pinned_to_it, schema, rendered, kept, others)
            json.dumps([todo.main, *todo.helpers])
            tried += 1

    assert tried > 50
