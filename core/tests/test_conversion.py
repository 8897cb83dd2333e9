"""Conversions between versions: exact, of any content, and only of known versions."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any, Final

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_core.admission.application import MAX_CONVERSION
from kubefoundry_core.conversion import CONVERSIONS, Conversions, answer
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.foreign_json import LEVELS
from kubefoundry_sdk.testing.generated import specs
from support.renamed_version import RENAMED, WITH_RENAMED
from support.webhook_port import listening, material

OLD, NEW = names.API_VERSIONS
FEW: Final = 40
"""Generated models of each test. A model is large, and takes some milliseconds to draw."""

ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
UNKNOWN: Final = st.dictionaries(st.text().map("x-{}".format), ANYTHING, max_size=3)
METADATA: Final = st.fixed_dictionaries(
    {"name": st.just("m")}, optional={"labels": UNKNOWN, "managedFields": ANYTHING}
)


def converted(objects: list[Any], version: str, conversions: Conversions = WITH_RENAMED) -> Any:
    """Return the response to the review that an API server would send."""
    review = {
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": "u", "desiredAPIVersion": version, "objects": objects},
    }
    answered = json.loads(answer(json.dumps(review).encode(), conversions))
    assert {name: answered[name] for name in ("kind", "apiVersion")} == {
        name: review[name] for name in ("kind", "apiVersion")
    }
    assert answered["response"]["uid"] == "u"
    return answered["response"]


def one(obj: Any, version: str) -> Any:
    [result] = converted([obj], version)["convertedObjects"]
    return result


@st.composite
def models(draw: st.DrawFn) -> Any:
    """Draw a ModelDeployment of v1alpha1, with unknown fields at each level."""
    spec = draw(specs())
    for place in [spec, *(value for value in spec.values() if isinstance(value, dict))]:
        place.update(draw(UNKNOWN))
    obj = {"apiVersion": OLD, "kind": names.MODEL_DEPLOYMENT, "metadata": draw(METADATA), "spec": spec}
    return {**obj, **draw(UNKNOWN), "status": draw(UNKNOWN)}


@settings(max_examples=FEW)
@given(models())
@pytest.mark.parametrize("version", [NEW, RENAMED.api_version])
def test_conversion_there_and_back_changes_nothing(version: str, model: Any) -> None:
    there = one(model, version)

    assert there["apiVersion"] == version
    assert there["metadata"] == model["metadata"]
    assert one(there, OLD) == model
    assert one(one(one(there, NEW), RENAMED.api_version), version) == there


@settings(max_examples=FEW)
@given(models(), st.sampled_from(["spec", "model", "engine", "nodeSelector", "tolerations"]), ANYTHING)
def test_conversion_accepts_any_type(model: Any, field: str, value: Any) -> None:
    """The API server converts before it validates."""
    (model if field == "spec" else model["spec"])[field] = value

    assert one(model, RENAMED.api_version)["metadata"] == model["metadata"]


def test_test_version_renames_moves_and_splits() -> None:
    spec = {
        "model": {"id": "org/a/b"},
        "engine": {"contextLength": 1},
        "nodeSelector": {"a": "b"},
        "tolerations": [],
    }
    obj = {"apiVersion": OLD, "kind": names.MODEL_DEPLOYMENT, "metadata": {"name": "m"}, "spec": spec}
    before = copy.deepcopy(obj)

    renamed = one(obj, RENAMED.api_version)

    assert obj == before
    assert renamed["spec"] == {
        "model": {"organization": "org", "name": "a/b"},
        "engine": {"maxLength": 1},
        "placement": {"nodeSelector": {"a": "b"}, "tolerations": []},
    }


@pytest.mark.parametrize("kind", [names.MODEL_DEPLOYMENT, names.PROVIDER_CONFIG])
def test_released_versions_differ_in_the_version_only(kind: str) -> None:
    obj = {"apiVersion": OLD, "kind": kind, "metadata": {"name": "m"}, "spec": {"a": [1.5, "é", None]}}

    there = converted([obj, obj], NEW, CONVERSIONS)["convertedObjects"]

    assert there == [{**obj, "apiVersion": NEW}] * 2


def test_deep_content_is_returned_as_it_is() -> None:
    """A refusal would fail each list of the cluster at that version."""
    text = '{"a":' * 5000 + "[1, 2]" + "}" * 5000
    obj = f'{{"apiVersion":"{OLD}","kind":"ModelDeployment","metadata":{{"name":"m"}},"spec":{text}}}'
    review = f'{{"request":{{"uid":"u","desiredAPIVersion":"{NEW}","objects":[{obj},{obj}]}}}}'

    answered = answer(review.encode()).decode()

    assert LEVELS < 5000
    assert answered.count(f'"spec":{text}') == 2
    assert answered.count(f'"apiVersion":"{NEW}"') == 2


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        (names.MODEL_DEPLOYMENT, RENAMED.api_version),
        (names.MODEL_DEPLOYMENT, "example.com/v1"),
        ("Widget", NEW),
    ],
)
def test_unknown_version_fails_with_a_message(kind: str, version: str) -> None:
    obj = {"apiVersion": OLD, "kind": kind, "metadata": {"name": "m"}}

    response = converted([obj], version, CONVERSIONS)

    assert response["result"] == {
        "status": "Failure",
        "message": f"this kubefoundry-core cannot convert {kind} from {OLD} to {version}; "
        "upgrade kubefoundry-core",
    }
    assert "convertedObjects" not in response


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"request":null}', b'{"request":{"uid":"u"}}', b'{"request":{"objects":[1]}}'],
)
def test_other_body_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        answer(body)


async def test_many_large_conversions_are_all_answered() -> None:
    model = {"apiVersion": OLD, "kind": names.MODEL_DEPLOYMENT, "metadata": {"name": "m"}}
    spec = {"a": "x" * (MAX_CONVERSION - 1000)}
    request = {"uid": "u", "desiredAPIVersion": NEW, "objects": [{**model, "spec": spec}]}
    body = json.dumps({"request": request}).encode()
    async with listening(material()) as (url, trust, _), aiohttp.ClientSession() as session:

        async def status() -> int:
            async with session.post(f"{url}/convert", data=body, ssl=trust) as answer:
                return answer.status

        assert await asyncio.gather(*(status() for _ in range(30))) == [200] * 30
