"""A provider without code: the expressions of a mapping, and invalid and hostile input."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk import Object, Observation, Provider, Schema
from kubefoundry_sdk._functions.mapping.provider import provider
from kubefoundry_sdk._functions.mapping.variables import MAX_PARTS
from kubefoundry_sdk._provider.results import Fault, observe, render
from kubefoundry_sdk.testing import deployment
from support.mappings import mapping

SCHEMA = Schema("example.com/v1")
GPU: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def provider_writing(value: Any) -> Provider:
    """Return the provider whose template writes a value into `spec.x`."""
    return provider(mapping(object__spec__x=value), {})


def rendered(value: Any, spec: dict[str, Any] | None = None) -> Any:
    """Return the rendered `spec.x`; None if the template leaves it out."""
    model = deployment({**GPU, **(spec or {})})
    return render(provider_writing(value), model, SCHEMA).main["spec"].get("x")


@pytest.mark.parametrize(
    ("template", "spec", "value"),
    [
        ("hf://${spec.model.id}:${derived.gpuCount}", {}, "hf://org/model:1"),
        ("${spec.image}", {}, None),
        ("a-${spec.image}", {}, None),
        ("${spec.env}", {}, None),
        ("${string(spec.engine.contextLength)}", {"engine": {"type": "vllm", "contextLength": 7}}, "7"),
        ("${spec.engine.trustRemoteCode ? 'yes' : omit}", {}, None),
        ("$${HOME} $(VAR) {a}", {}, "${HOME} $(VAR) {a}"),
        ("${{'a': {'b': '}'}}}", {}, {"a": {"b": "}"}}),
        ({"a": {"b": "${spec.image}"}, "c": [{"d": "${spec.image}"}]}, {}, None),
        ({"route": {}, "list": []}, {}, {"route": {}, "list": []}),
        ([1, None, True, 1.5, "${spec.image}"], {}, [1, True, 1.5]),
        (
            {"$merge": ["${spec.nodeSelector}", {"b": "2", "c": "${spec.image}"}]},
            {"nodeSelector": {"a": "1", "b": "1"}},
            {"a": "1", "b": "2"},
        ),
        (
            {"$argv": {"port": 8000, "trust-remote-code": True, "lora": False, "rope": {"factor": 2}}},
            {"engine": {"type": "vllm", "args": {"seed": "$(X)", "enable-x": "false"}}},
            [
                *("--port", "8000", "--trust-remote-code", "--rope", '{"factor": 2}'),
                *("--no-enable-x", "--seed", "$$(X)"),
            ],
        ),
        ("${derived.resources}", {}, {"limits": {"nvidia.com/gpu": "1"}}),
        ("${derived.tensorParallelSize}", {"resources": {"gpu": {"count": 4}}}, 4),
        ("${spec.tolerations.map(t, t.key)}", {"tolerations": [{"key": "a"}]}, ["a"]),
        ("${has(spec.scaling.prefill.gpu.count) ? 1 : 2}", {}, 2),
        (
            "${spec.env.filter(e, has(e.valueFrom.secretKeyRef)).map(e, e.name)}",
            {"env": [{"name": "A"}]},
            None,
        ),
        ("${spec['image']}", {"image": "a/b:1"}, "a/b:1"),
        ("${derived['resources']['limits']}", {}, {"nvidia.com/gpu": "1"}),
        ("${spec.env.map(e, e.name + spec.image)}", {"env": [{"name": "A"}]}, None),
        ("${metadata.labels['tier'] + spec.engine.args.x}", {}, None),
    ],
)
def test_template_is_rendered(template: Any, spec: dict[str, Any], value: Any) -> None:
    assert rendered(template, spec) == value


def test_default_image_is_rendered_and_named() -> None:
    built = provider(mapping(object__spec__image="${derived.image}"), {"vllm": "example.com/vllm:1"})

    result = render(built, deployment(GPU), SCHEMA)

    assert (result.main["spec"]["image"], result.image) == ("example.com/vllm:1", "example.com/vllm:1")


def test_helper_is_rendered_and_permitted() -> None:
    helper = {
        "kind": "Service",
        "metadata": {"name": "${metadata.name}-http"},
        "spec": {"ports": [{"port": 80}]},
    }
    built = provider(mapping(helpers=[helper]), {})

    [service] = render(built, deployment(GPU), SCHEMA).helpers

    assert (service["apiVersion"], service["metadata"]) == ("v1", {"name": "m-http"})
    assert built.helper_kinds == ("Service",)


def test_optional_field_is_written_only_where_the_crd_has_it() -> None:
    built = provider_writing("${'env' in features ? spec.env : omit}")
    model = deployment({**GPU, "env": [{"name": "A"}]})

    with_env = render(built, model, Schema("example.com/v1", frozenset({"env"})))

    assert with_env.main["spec"]["x"] == [{"name": "A"}]
    assert "x" not in render(built, model, SCHEMA).main["spec"]


@pytest.mark.parametrize(("overrides", "size"), [(None, 1), ({"nodes": 2}, 2)])
def test_override_is_rendered(overrides: dict[str, Any] | None, size: int) -> None:
    form = {"type": "object", "properties": {"nodes": {"type": "integer", "minimum": 1}}}
    template = "${has(overrides.nodes) ? overrides.nodes : 1}"
    built = provider(mapping(overrides=form, object__spec__x=template), {})
    model = deployment({**GPU, "provider": {"name": "widgets", "overrides": overrides}})

    assert render(built, model, SCHEMA).main["spec"]["x"] == size


CACHE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a-b": {"type": "object", "properties": {"size": {"type": "integer"}, "path": {"type": "string"}}}
    },
}


@pytest.mark.parametrize(
    "template",
    [
        "${overrides}",
        "${overrides['a-b']}",
        ["${overrides['a-b'].size}", "${overrides['a-b']['path']}"],
    ],
)
def test_override_is_read_by_itself_or_with_its_object(template: Any) -> None:
    built = provider(mapping(overrides=CACHE, object__spec__x=template), {})
    model = deployment({**GPU, "provider": {"name": "widgets", "overrides": {"a-b": {"size": 3}}}})

    assert "3" in str(render(built, model, SCHEMA).main["spec"]["x"])


def test_has_of_a_missing_parent_is_false() -> None:
    template = ["${has(overrides.cache.size) ? overrides.cache.size : 10}", "${overrides.cache}"]
    form = {"type": "object", "properties": {"cache": CACHE["properties"]["a-b"]}}
    rules = [{"when": "has(spec.scaling.prefill.gpu)", "say": "no"}]
    built = provider(mapping(overrides=form, object__spec__x=template, problems=rules), {})

    assert render(built, deployment(GPU), SCHEMA).main["spec"]["x"] == [10]
    assert list(built.supports(deployment(GPU), None)) == []


UNREAD = {
    "a field of which a computed amount is read": (
        "${derived.resources.limits['nvidia.com/gpu']}",
        {"resources": {"gpu": {"count": 1}, "memory": "8Gi"}},
        "resources.memory",
    ),
    "a field of which a computed part is read": (
        "${derived.resources['limits']}",
        {"resources": {"gpu": {"count": 1}, "cpu": "8"}},
        "resources.cpu",
    ),
    "a field that no template names": (1, {"image": "a/b:1"}, "image"),
    "a field that is asked for only": ("${has(spec.image)}", {"image": "a/b:1"}, "image"),
    "a field of which one entry is read": (
        "${spec.engine.args['seed']}",
        {"engine": {"type": "vllm", "args": {"seed": "1", "x": "2"}}},
        "engine.args",
    ),
    "a list of which one item is read": ("${spec.env[0].name}", {"env": [{"name": "A"}]}, "env"),
    "a nested field": (
        1,
        {"podTemplate": {"metadata": {"labels": {"a": "b"}}}},
        "podTemplate.metadata.labels",
    ),
    "another source": (1, {"model": {"id": "org/model", "source": "custom"}}, "model.source"),
    "another GPU": (1, {"resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}}}, "resources.gpu.type"),
}


@pytest.mark.parametrize(("template", "spec", "field"), UNREAD.values(), ids=UNREAD.keys())
def test_unread_field_is_refused(template: Any, spec: dict[str, Any], field: str) -> None:
    problems = provider_writing(template).supports(deployment({**GPU, **spec}), None)

    assert list(problems) == [f"Widgets has no place for {field}: remove it"]


def test_own_sentences_and_contradictions_refuse() -> None:
    built = provider(
        mapping(
            object__spec__x={"$argv": {"port": 8000}},
            refused={"env": "Widgets never sets {field}: build it into the image"},
            problems=[
                {"when": "derived.gpuCount > 8", "say": "Widgets has no ${derived.gpuCount} GPUs: ask for 8"},
                {"when": "spec.engine.contextLength > 5", "say": "never, because no length is set"},
            ],
        ),
        {},
    )
    spec = {"engine": {"type": "vllm", "args": {"port": "9"}}, "resources": {"gpu": {"count": 9}}}

    assert list(built.supports(deployment({**spec, "env": [{"name": "A"}]}), None)) == [
        "Widgets has no 9 GPUs: ask for 8",
        "Widgets never sets env: build it into the image",
        'engine.args "port" is "9", but Widgets makes it "8000": remove it',
    ]


@pytest.mark.parametrize(
    ("say", "sentence"),
    [
        ("Widgets needs a signed image, not ${spec.image}", "Widgets needs a signed image, not unset"),
        ("${'image ' + spec.image}", "unset"),
    ],
)
def test_sentence_stays_without_a_value(say: str, sentence: str) -> None:
    built = provider(mapping(problems=[{"when": "!has(spec.image)", "say": say}]), {})

    assert list(built.supports(deployment(GPU), None)) == [sentence]


MANY = [{"name": f"A{index}", "value": "x" * 300} for index in range(200)]
FAILING: dict[str, tuple[Any, str]] = {
    "too many steps": (
        "${spec.env.map(a, spec.env.map(b, a.name == b.name))}",
        "object.spec.x: it takes more than 5000 steps",
    ),
    "a value that explodes": (
        "${spec.env.map(a, spec.env)}",
        "object.spec.x: it builds a value of more than 4096 parts",
    ),
    "too much output": (
        [{str(n): "${spec.env}"} for n in range(40)],
        "more than 1048576 characters are rendered",
    ),
    "steps of many expressions": (
        ["${spec.env.map(a, a.name == 'A')}"] * 30,
        "object.spec.x[4]: it takes more than 5000 steps",
    ),
    "a division by zero": ("${1 / (derived.gpuCount - 1)}", "object.spec.x: "),
    "an infinite number": ("${1.0 / 0.0}", "object.spec.x: it returns inf, which JSON does not have"),
    "a type": ("${type(spec.env)}", "object.spec.x: it returns "),
    "a map with numbers as keys": (
        "${{1: 'a'}}",
        "object.spec.x: it returns MapType({IntType(1): ",
    ),
    "a list inside of a text": ("a ${spec.env}", "object.spec.x: [{'name': 'A0'"),
    "a missing part of an item": ("${spec.env.map(e, e.valueFrom)}", "object.spec.x: no such member"),
    "a missing part of an item in a branch": (
        "${has(spec.image) ? [dyn(spec.image)] : spec.env.map(e, e.valueFrom)}",
        "object.spec.x: no such member in mapping: 'valueFrom': ask with has() or in first",
    ),
    "a missing part of an item, by another name": (
        "${spec.env.map(status, status['valueFrom'])}",
        "object.spec.x: no such key: ask with has() or in first",
    ),
    "a merge of a text": ({"$merge": ["${spec.model.id}"]}, "object.spec.x.$merge: org/model is not a map"),
}


@pytest.mark.parametrize(("template", "problem"), FAILING.values(), ids=FAILING.keys())
def test_failing_template_harms_only_its_object(template: Any, problem: str) -> None:
    built = provider_writing(template)

    with pytest.raises(Fault) as error:
        render(built, deployment({**GPU, "env": MANY}), SCHEMA)

    message = str(error.value)
    assert problem in message
    assert "\n" not in message and len(message) < 300


def test_model_is_rendered_after_one_that_failed() -> None:
    built = provider_writing("${spec.env.map(a, spec.env.map(b, a.name == b.name))}")
    with pytest.raises(Fault):
        render(built, deployment({**GPU, "env": MANY}), SCHEMA)

    result = render(built, deployment({**GPU, "env": [{"name": "A"}]}), SCHEMA)

    assert result.main["spec"]["x"] == [[True]]


def test_failing_problem_is_a_fault() -> None:
    built = provider(mapping(problems=[{"when": "spec.env[0].name == 'A'", "say": "no"}]), {})

    with pytest.raises(Fault, match=r"problems\[0\].when: "):
        built.supports(deployment(GPU), None)


def observed(live: Object, spec: dict[str, Any] | None = None, **changes: Any) -> Observation:
    built = provider(mapping(**changes), {})
    return observe(built, deployment({**GPU, **(spec or {})}), live)


SERVING = {"state": "Serving", "ready": 1}


def test_status_is_read() -> None:
    observation = observed({"status": SERVING})

    assert (observation.phase, observation.reason, observation.message) == (
        "Running",
        "DeploymentReady",
        "Widget is Running",
    )
    assert (observation.replicas.ready, observation.endpoint.service) == (1, "m")


def test_status_is_searched() -> None:
    phases = [{"phase": "Running", "when": "status.parts.exists(p, p.up && p.name == metadata.name)"}]

    observation = observed(
        {"status": {"ready": 1, "parts": [{"up": True, "name": "m"}]}}, status__phases=phases
    )

    assert observation.phase == "Running"


ZERO = {"scaling": {"replicas": 0}}


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        (None, {}, ("Pending", "Progressing", "Widget has no status yet")),
        ({}, ZERO, ("Pending", "Progressing", "Widget has no status yet")),
        ("up", {}, ("Pending", "Progressing", "Widget has no status yet")),
        ({"state": "Serving"}, {}, ("Deploying", "Progressing", "Widget has no ready replica yet")),
        ({"state": "Serving", "ready": 0}, ZERO, ("Pending", "ScaledToZero", "Scaled to zero")),
        ({"state": "Serving", "ready": 1}, ZERO, ("Running", "DeploymentReady", "Widget is Running")),
        (
            {"state": "Dancing"},
            {},
            ("Deploying", "Unknown", "Widget is in a state that the mapping does not know"),
        ),
        (
            {"x": [0] * MAX_PARTS},
            {},
            (
                "Deploying",
                "Unknown",
                f"Widget cannot be read: status: has more than {MAX_PARTS} values",
            ),
        ),
    ],
)
def test_phase_follows_status(status: Any, spec: dict[str, Any], expected: tuple[str, str, str]) -> None:
    observation = observed({"status": status}, spec)

    assert (observation.phase, observation.reason, observation.message) == expected


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


NONSENSE: list[Any] = [
    *(None, "", "x" * 10**6, 7, -1, 2**70, 1.5, float("inf"), True, [], {}, [[]], {"state": {}}),
    *([None], {"a": None}, deep(90), deep(5000)),
]


@pytest.mark.parametrize("value", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_in_status_is_no_exception(value: Any) -> None:
    changes: dict[str, Any] = {
        "status__message": "${status.message}",
        "status__selector": "${status.selector}",
        "status__updating": "status.updating > 1",
        "status__endpoint": {"url": "${status.url}"},
    }
    for key in ("state", "ready", "message", "selector", "updating", "url", "conditions"):
        observation = observed({"status": {**SERVING, "url": "http://a/b", key: value}}, **changes)

        assert observation.phase in ("Deploying", "Running")


def test_failing_condition_is_named_when_no_phase_holds() -> None:
    phases = [{"phase": "Running", "when": "status.replicas[0] > 1"}]

    observation = observed({"status": {"replicas": []}}, status__phases=phases)

    assert observation.reason == "Unknown"
    assert observation.message.startswith(
        "Widget is in a state that the mapping does not know: status.phases[0].when: "
    )


def test_invalid_url_is_not_published() -> None:
    observation = observed(
        {"status": {**SERVING, "url": "ftp://x"}}, status__endpoint={"url": "${status.url}"}
    )

    assert (observation.phase, observation.message) == ("Deploying", "Widget has no valid endpoint yet")
