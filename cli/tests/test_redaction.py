"""What leaves the cluster in a bundle: no value that somebody could have meant to be secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_cli.redaction import REMOVED, redacted, scrubbed

SECRET = "S3cr3t-value-0815"


@pytest.mark.parametrize(
    "text",
    [
        f"https://me:{SECRET}@example.com/x",
        f"GET https://example.com/x?sig={SECRET}&a=1 failed",
        f"://?a,https://example.com/x?sig={SECRET}",
        f"https://me:{SECRET}?x@example.com/",
        f"://example.com/x?bearer {SECRET}",
        f"eyJhbGciOiJIUzI1.a.b.token={SECRET}",
        f"--api-key {SECRET}",
        f"--api-key={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f'{{"password": "{SECRET}"}}',
        f"HF_TOKEN={SECRET}",
        f"hf_{SECRET}",
        f"eyJhbGciOiJIUzI1.{SECRET}.x",
        f"AWS_SECRET_ACCESS_KEY: {SECRET}",
        f"token: '{SECRET}'",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    ],
)
def test_credentials_are_removed_from_text(text: str) -> None:
    assert SECRET not in scrubbed(text)


@pytest.mark.parametrize(
    "text",
    [
        "Pod m-0: 0/6 nodes are available: 6 Insufficient nvidia.com/gpu",
        "image registry.example.com/kubefoundry/core:0.1.0 cannot be pulled",
        "https://docs.nvidia.com/dynamo",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert scrubbed(text) == text


OBJECTS: dict[str, dict[str, Any]] = {
    "variable": {"spec": {"env": [{"name": "A", "value": SECRET}]}},
    "container": {
        "spec": {"template": {"spec": {"containers": [{"env": [{"name": "A", "value": SECRET}]}]}}}
    },
    "argument": {"spec": {"engine": {"args": {"some-flag": SECRET}}}},
    "list of arguments": {
        "spec": {"containers": [{"args": ["--x", SECRET], "command": ["sh", "-c", SECRET]}]}
    },
    "override": {"spec": {"provider": {"overrides": {"a": {"b": [SECRET]}}}}},
    "annotation": {"metadata": {"annotations": {"example.com/a": SECRET}}},
    "record": {"metadata": {"annotations": {"kubefoundry.ai/applied": SECRET}}},
    "label": {"metadata": {"labels": {"a": SECRET}}},
    "pod label": {
        "spec": {"podTemplate": {"metadata": {"labels": {"a": SECRET}, "annotations": {"b": SECRET}}}}
    },
    "managed field": {
        "metadata": {"managedFields": [{"manager": "m", "fieldsV1": {f'k:{{"value":"{SECRET}"}}': {}}}]}
    },
    "image": {"spec": {"image": f"https://u:{SECRET}@example.com/x"}},
    "message": {"status": {"message": f"401 for https://u:{SECRET}@example.com/"}},
    "Secret": {"kind": "Secret", "data": {"a": SECRET}, "stringData": {"b": SECRET}},
    "unknown field": {"spec": {"whatever": SECRET}},
    "node selector": {"spec": {"nodeSelector": {"a": SECRET}}},
}


@pytest.mark.parametrize("name", OBJECTS)
def test_no_value_of_an_object_goes_out(name: str) -> None:
    assert SECRET not in json.dumps(redacted(OBJECTS[name]))


def test_redaction_keeps_diagnostic_values() -> None:
    obj = {
        "kind": "ModelDeployment",
        "metadata": {
            "name": "m",
            "namespace": "n",
            "generation": 2,
            "finalizers": ["kubefoundry.ai/x-provider"],
        },
        "spec": {
            "model": {"id": "org/model"},
            "engine": {"type": "vllm", "args": {"dtype": "auto"}},
            "env": [{"name": "HF_HOME", "value": "/x"}],
            "resources": {"gpu": {"count": 1}},
        },
        "status": {
            "phase": "Failed",
            "conditions": [{"type": "Ready", "status": "False", "reason": "Failed"}],
        },
    }

    found = redacted(obj)

    assert (found["metadata"]["name"], found["metadata"]["generation"]) == ("m", 2)
    assert found["metadata"]["finalizers"] == ["kubefoundry.ai/x-provider"]
    assert found["spec"]["engine"] == {"type": "vllm", "args": {"dtype": "<removed>"}}
    assert found["spec"]["env"] == ["HF_HOME"]
    assert (found["spec"]["model"], found["spec"]["resources"]) == (
        {"id": "org/model"},
        {"gpu": {"count": 1}},
    )
    assert found["status"] == obj["status"]


def test_amounts_are_kept_and_other_texts_beside_them_are_not() -> None:
    quota = {
        "hard": {"pods": "10", "requests.memory": "1.5Gi", "limits.cpu": 4, "note": "hunter2", "list": ["x"]}
    }

    assert redacted({"metadata": {"name": "q"}, "spec": quota})["spec"]["hard"] == {
        "pods": "10",
        "requests.memory": "1.5Gi",
        "limits.cpu": 4,
        "note": REMOVED,
        "list": REMOVED,
    }
