"""An invalid or hostile mapping is refused before the process starts, in one line that names the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk._functions.mapping.document import MAX_CHARACTERS
from kubefoundry_sdk._functions.mapping.provider import load
from support.mappings import mapping


def text(**changes: Any) -> Callable[[], str]:
    return lambda: mapping(**changes)


def expression(template: str) -> Callable[[], str]:
    return text(object__spec__x=template)


HELPER = {"kind": "Service", "metadata": {"name": "${metadata.name}"}}
CACHE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cache": {"type": "object", "properties": {"size": {"type": "integer"}, "path": {"type": "string"}}}
    },
}
INVALID: dict[str, tuple[Callable[[], str], str]] = {
    "an unknown key": (text(probelms=[]), "probelms: is an unknown key (did you mean problems?)"),
    "an unknown key below": (
        text(status__endpoint__prot=1),
        "status.endpoint.prot: is an unknown key (did you mean port?)",
    ),
    "a missing key": (text(object=None), "object: is required"),
    "a wrong type": (text(version=1), "version: should be a valid string"),
    "no phases": (text(status__phases=[]), "status.phases: Tuple should have at least 1 item"),
    "no fields": (text(fields=None), "an upstream kind with a CRD needs fields"),
    "a list": (lambda: "[]", "should be an object"),
    "an empty file": (lambda: "", "should be an object"),
    "no YAML": (lambda: "a: [", "the file is not YAML: "),
    "a repeated key": (
        lambda: "name: ${a}\nname: b",
        """the key 'name' occurs twice in "<unicode string>", line 2, column 1\n""",
    ),
    "two documents": (lambda: "a: 1\n---\nb: 1", "the file holds 2 YAML documents"),
    "a huge file": (
        lambda: mapping() + "#" * MAX_CHARACTERS,
        f"the file has more than {MAX_CHARACTERS} characters",
    ),
    "a deep file": (lambda: "[" * 300 + "]" * 300, "the file is nested more than 200 levels deep"),
    "a cyclic anchor": (lambda: "object: &a {b: *a}", "the file has aliases that expand to more than"),
    "aliases that explode": (
        lambda: (
            "a: &a [x, x]\n"
            + "".join(
                f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            )
        ),
        "the file has aliases that expand to more than",
    ),
    "NaN": (lambda: mapping() + "settles: .nan", "the file has a value that JSON does not have"),
    "bytes": (lambda: "object: !!binary aGk=", "the file has a value that JSON does not have"),
    "a field that does not exist": (
        expression("${spec.engin.type}"),
        "object.spec.x: column 6: no field 'engin' in spec (did you mean 'engine'?)",
    ),
    "an unknown variable": (expression("${spek.image}"), "object.spec.x: column 1: unknown variable 'spek'"),
    "an unknown function": (
        expression("${spec.env.sort()}"),
        "object.spec.x: column 10: unknown function 'sort'",
    ),
    "an override that is not declared": (
        expression("${overrides.nodes}"),
        "object.spec.x: column 11: no field 'nodes' in overrides",
    ),
    "no CEL": (expression("${spec.}"), "object.spec.x: column "),
    "an open expression": (
        expression("a ${spec.image"),
        "object.spec.x: the expression '${spec.image' does not end",
    ),
    "a long expression": (
        expression("${'" + "a" * 1100 + "'}"),
        "object.spec.x: column 1: the expression is 1102 characters long, at most 1024 are allowed",
    ),
    "a large expression": (
        expression("${[" + "1, " * 100 + "1]}"),
        "syntax nodes, at most 300 are allowed",
    ),
    "nested macros": (
        expression("${[1].map(a, [1].map(b, [1].map(c, c)))}"),
        "macros may be nested 2 deep, not deeper",
    ),
    "an object of the spec": (
        expression("${spec.resources}"),
        "object.spec.x: spec.resources is an object: read its fields, such as spec.resources.cpu",
    ),
    "the whole spec": (expression("${spec}"), "object.spec.x: spec is an object: read its fields"),
    "a hidden variable": (
        expression("${['a'].map(spec, spec)}"),
        "object.spec.x: the variable spec of map() needs another name",
    ),
    "a pattern of a user": (
        expression("${spec.env.map(e, e.value.matches(e.name))}"),
        "object.spec.x: column 33: matches() needs a pattern in quotes",
    ),
    "a pattern that is computed": (
        text(problems=[{"when": "matches(metadata.name, 'a' + 'b')", "say": "no"}]),
        "problems[0].when: column 24: matches() needs a pattern in quotes",
    ),
    "an invalid pattern": (
        text(status__phases=[{"phase": "Running", "when": "status.state.matches('(')"}]),
        "status.phases[0].when: column 22: the pattern of matches() is invalid: missing ): (",
    ),
    "a count without an expression": (
        text(status__ready="status.ready"),
        "status.ready: should be a number from 0 to 2147483647, or one ${…}, not 'status.ready'",
    ),
    "a count with more than an expression": (
        text(status__desired="${spec.scaling.replicas}0"),
        "status.desired: should be a number from 0",
    ),
    "a count out of range": (text(status__ready=-1), "status.ready: should be a number from 0"),
    "a port without an expression": (
        text(status__endpoint__port="8000"),
        "status.endpoint.port: should be a number from 1 to 65535, or one ${…}, not '8000'",
    ),
    "a port out of range": (
        text(status__endpoint__port=99999),
        "status.endpoint.port: should be a number from 1",
    ),
    "an empty endpoint": (text(status__endpoint={}), "status.endpoint: needs a url, or service and port"),
    "a service without a port": (
        text(status__endpoint={"service": "a"}),
        "status.endpoint: needs a url, or service and port",
    ),
    "a url without an expression": (
        text(status__endpoint={"url": "status.url"}),
        "status.endpoint: has URL 'status.url', which is not http(s)://",
    ),
    "a service without an expression": (
        text(status__endpoint={"service": "metadata.name", "port": "${status.port}"}),
        "status.endpoint: has service 'metadata.name', which is not a valid Service name",
    ),
    "a condition in braces": (
        text(status__phases=[{"phase": "Running", "when": "${status.state == 'a'}"}]),
        "status.phases[0].when: column 1: syntax error at '${status.state': write the condition without ${ }",
    ),
    "a rule in braces": (
        text(selectionRules=[{"condition": "${true}", "priority": 1}]),
        "selectionRules[0].condition: column 1: syntax error at '${true}': write the condition without ${ }",
    ),
    "features in the status": (
        text(status__message="${features[0]}"),
        "status.message: column 1: unknown variable 'features'",
    ),
    "an expression in a key": (
        text(object__spec__x={"a-${metadata.name}": 1}),
        "object.spec.x.a-${metadata.name}: a key has no expressions: write the map as one, ${{KEY: VALUE}}",
    ),
    "an expression as a key": (
        text(object__spec__x={"$argv": {"${metadata.name}": 1}}),
        "object.spec.x.$argv.${metadata.name}: a key has no expressions",
    ),
    "an expression with a colon and no quotes": (
        lambda: "a: ${has(spec.image) ? 'a': 'b'}",
        "line 1, column 27 (quote a text that has ': ', '#' or braces)",
    ),
    "an expression in a flow map": (
        lambda: "a: {b: ${spec.image}}",
        "(quote a text that has ': ', '#' or braces)",
    ),
    "an expression with a comment": (
        lambda: mapping(object__spec__x="X").replace("X", "${string(1) + ' # a'}"),
        """object.spec.x: the expression "${string(1) + '" does not end: close it with }, or quote a text with '#'""",
    ),
    "a condition of another type": (
        text(status__phases=[{"phase": "Running", "when": "size(status.a)"}]),
        "status.phases[0].when: the condition is an int, not a bool",
    ),
    "the status in a template": (
        expression("${status.ready}"),
        "object.spec.x: column 1: unknown variable 'status'",
    ),
    "another kind": (text(object__kind="Pod"), "object.kind: remove it, because only the runtime sets it"),
    "another version": (text(object__apiVersion="v1"), "object.apiVersion: remove it"),
    "another namespace": (
        text(object__metadata={"namespace": "kube-system"}),
        "object.metadata.namespace: remove it, because only the runtime sets it",
    ),
    "another name": (text(object__metadata={"name": "x"}), "object.metadata.name: remove it"),
    "an owner": (
        text(object__metadata={"ownerReferences": []}),
        "object.metadata.ownerReferences: remove it",
    ),
    "metadata that is computed": (
        text(object__metadata="${{'namespace': 'kube-system'}}"),
        "object.metadata: should be a map with annotations, labels",
    ),
    "an object that is computed": (
        text(object={"$merge": [{"kind": "Pod"}]}),
        "object: should be a map with the object's fields",
    ),
    "an unknown directive": (
        text(object__spec__x={"$merg": []}),
        "object.spec.x.$merg: has to be $merge or $argv, alone in its map (did you mean $merge?)",
    ),
    "a directive among fields": (
        text(object__spec__x={"a": 1, "$merge": []}),
        "object.spec.x.$merge: has to be $merge or $argv, alone in its map",
    ),
    "a merge of no list": (
        text(object__spec__x={"$merge": {}}),
        "object.spec.x.$merge: should be a list of maps",
    ),
    "options that are no map": (text(object__spec__x={"$argv": []}), "object.spec.x.$argv: should be a map"),
    "a Secret": (
        text(helpers=[{**HELPER, "kind": "Secret"}]),
        "helpers[0].kind: should be one of ConfigMap, Service, PersistentVolumeClaim",
    ),
    "a kind that is computed": (
        text(helpers=[{**HELPER, "kind": "${'Sec' + 'ret'}"}]),
        "helpers[0].kind: should be",
    ),
    "a helper elsewhere": (
        text(helpers=[{**HELPER, "metadata": {"name": "a", "namespace": "b"}}]),
        "helpers[0].metadata.namespace: remove it",
    ),
    "a helper without a name": (
        text(helpers=[{**HELPER, "metadata": {}}]),
        "helpers[0].metadata.name: is required",
    ),
    "a helper without metadata": (
        text(helpers=[{"kind": "Service"}]),
        "helpers[0].metadata.name: is required",
    ),
    "a field that is refused and read": (
        text(refused={"model.id": "no"}),
        "refused.model.id: a template reads spec.model.id",
    ),
    "a refused field that does not exist": (
        text(refused={"modle.id": "no"}),
        "refused.modle.id: a ModelDeployment has no such field (did you mean model.id?)",
    ),
    "an override that nothing reads": (
        text(overrides={"type": "object", "properties": {"nodes": {"type": "integer"}}}),
        "overrides.properties.nodes: no template reads overrides.nodes",
    ),
    "a nested override that nothing reads": (
        text(overrides=CACHE, object__spec__x="${overrides.cache.size}"),
        "overrides.properties.cache.properties.path: no template reads overrides.cache.path",
    ),
    "an override that is asked for only": (
        text(overrides=CACHE, object__spec__x="${has(overrides.cache.path) ? overrides.cache.size : 1}"),
        "overrides.properties.cache.properties.path: no template reads overrides.cache.path",
    ),
    "a nested override that is not declared": (
        text(overrides=CACHE, object__spec__x="${overrides.cache.sise}"),
        "object.spec.x: column 17: no field 'sise' in overrides.cache (did you mean 'size'?)",
    ),
    "an invalid selection rule": (
        text(selectionRules=[{"condition": "spec.engin == 'a'", "priority": 1}]),
        "selectionRules[0].condition: column 6: no field 'engin' in spec",
    ),
    "engines that no template tells apart": (
        text(capabilities__engines=["vllm", "sglang"]),
        "capabilities: has several engines, and no template reads spec.engine.type",
    ),
}


@pytest.mark.parametrize(("written", "problem"), INVALID.values(), ids=INVALID.keys())
def test_invalid_mapping_is_refused_in_one_line(
    written: Callable[[], str], problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(written())

    with pytest.raises(ValueError, match="mapping") as error:
        load(file, {})

    message = f"{error.value}\n"
    assert message.startswith(f"mapping {file}: ")
    assert problem in message
    assert message.count("\n") == 1 and len(message) < 500


def test_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing.yaml: No such file or directory"):
        load(tmp_path / "missing.yaml", {})
