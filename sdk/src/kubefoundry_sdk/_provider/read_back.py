"""Reads specs from live objects: the functions that the providers' `read_back` functions share.

The result may have unneeded values (`--port`, a tensor parallel size): the caller renders the spec again and finds
the values that can be omitted. A missing value must show up as a difference in that render.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import Any, Final

from kubefoundry_sdk._api import engine_args, formats, structure
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.names import MODEL_LABEL
from kubefoundry_sdk._api.rules import VOLUME_SOURCES
from kubefoundry_sdk._api.structure import Schema
from kubefoundry_sdk._api.untrusted import part

_DEFAULTS: Final = {"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}
"""Values that the API server fills into every pod template."""

_OF_FIELDS: Final = frozenset(
    name for fields in engine_args.FIELD_FLAGS.values() for names in fields.values() for name in names
)

_SHORT: Final = re.compile(r"-[A-Za-z]")
"""The beginning of a short option. A value such as -1 is no option."""


def flags(argv: Sequence[Any]) -> dict[str, str]:
    """Return the options in a container's `args` by name: `--a b`, `--a=b`, `""` for a bare one. Skip other words.

    Options that `extra` returns are left out.
    """
    options: dict[str, str] = {}
    for name, words in _without_repetition(argv):
        _, equals, value = words[0].partition("=")
        options[name] = value if equals else "".join(words[1:])
    return options


def extra(argv: Sequence[Any], names: Container[str] = ()) -> list[str]:
    """Return the entries in a container's `args` that only `engine.extraArgs` can express.

    These are repeated options, options with several values, those with a value that stands for a switch, short
    options, and the options in `names`.
    """
    kept = _without_repetition(argv)
    return [word for group in _groups(argv) if group not in kept or group[0] in names for word in group[1]]


def _without_repetition(argv: Sequence[Any]) -> list[tuple[str, list[str]]]:
    groups = _groups(argv)
    names = [name for name, _ in groups]
    return [
        (name, words)
        for name, words in groups
        if names.count(name) == 1
        and len(words) <= 2
        and not name.startswith("-")
        and (name.replace("_", "-") in _OF_FIELDS or words[1:] not in (["true"], ["false"], [""]))
    ]


def _groups(argv: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Return each option's name, with its entries: the option and the words up to the next one.

    The name of a short option (`-O3`, `-q`) has its dash.
    """
    groups: list[tuple[str, list[str]]] = []
    for entry in argv:
        # as the kubelet expands it (`command_line.literal`)
        word = str(entry).replace("$$", "$")
        if word.startswith("--"):
            groups.append((word[2:].partition("=")[0], [word]))
        elif _SHORT.match(word):
            groups.append((word.partition("=")[0], [word]))
        elif groups:
            groups[-1][1].append(word)
    return groups


def from_flags(engine: str, stated: Mapping[str, str]) -> Object:
    """Return `model` and `engine` of a spec from the engine's options.

    An option becomes a field if there is one for it, else an entry of `engine.args`.
    """
    fields: dict[str, str] = {}
    args = dict(stated)
    for field, names in engine_args.FIELD_FLAGS[engine].items():
        for name in (*names, *(name.replace("-", "_") for name in names)):
            if name in args:
                fields[field] = args.pop(name)
    settings: Object = {"type": engine}
    if (length := fields.get("engine.contextLength")) is not None:
        if length.isdecimal():
            settings["contextLength"] = int(length)
        else:
            args[engine_args.FIELD_FLAGS[engine]["engine.contextLength"][0]] = length
    if fields.get("engine.trustRemoteCode") in ("", "true"):
        settings["trustRemoteCode"] = True
    if args:
        settings["args"] = args
    return {"model": _model(fields), "engine": settings}


def _has_own_name(fields: Mapping[str, str]) -> bool:
    """Check whether the name in requests has to be stated: not if it is one that only `model.id` can give."""
    name, location = fields.get("model.servedName"), fields.get("model.id", "")
    is_valid = name is not None and re.fullmatch(formats.SERVED_NAME, name) is not None
    return name is not None and (is_valid or name != location.rsplit("/", 1)[-1])


def _model(fields: Mapping[str, str]) -> Object:
    """Return `model` of a spec. Objects do not have the id of a model in object storage: its name takes the place."""
    location = fields.get("model.id")
    named = {"servedName": fields["model.servedName"]} if _has_own_name(fields) else {}
    if location is None:
        return {"source": "custom", **named}
    if not re.fullmatch(formats.S3_URI, location):
        return {"id": location, **named}
    last = location.rstrip("/").rsplit("/", 1)[-1]
    return {"id": named.get("servedName", last), **named, "storage": {"uri": location}}


def text(value: Any) -> str:
    """Return the `engine.args` text of a typed value."""
    return value if isinstance(value, str) else json.dumps(value)


def amounts(resources: Any) -> Object:
    """Return `resources` of a spec from a container's: memory, cpu, and its only extended resource as GPUs."""
    requests, limits = part(resources, "requests"), part(resources, "limits")
    stated = {
        "memory": requests.get("memory", limits.get("memory")),
        "cpu": requests.get("cpu"),
        "cpuLimit": limits.get("cpu"),
    }
    # keep a number: as text, the next apply would change the live object
    fields: Object = {
        name: value if type(value) is int else str(value)
        for name, value in stated.items()
        if value is not None
    }
    gpu = next((name for name in limits if "/" in name), None)
    if gpu is not None and str(limits[gpu]).isdecimal():
        return {**fields, "gpu": {"count": int(limits[gpu]), "type": gpu}}
    return fields


def pod_fields(container: Any, pod: Any, metadata: Any, own: Container[str] = ()) -> Object:
    """Return the fields from a container, its pod's spec and its metadata: image, env, Secret, nodes, pod template.

    Args:
        container: The engine's container.
        pod: The spec of its pod.
        metadata: The metadata of its pod.
        own: Names of volumes that the provider or its upstream adds itself.
    """
    sources = part(container).get("envFrom") or ()
    secrets = [name for source in sources if (name := part(source, "secretRef").get("name"))]
    labels = {key: value for key, value in part(metadata, "labels").items() if key != MODEL_LABEL}
    stated = {"labels": labels, "annotations": part(metadata).get("annotations")}
    fields = {
        "image": part(container).get("image"),
        "env": part(container).get("env"),
        "secrets": {"huggingFaceToken": secrets[-1]} if secrets else None,
        "nodeSelector": part(pod).get("nodeSelector"),
        "tolerations": part(pod).get("tolerations"),
        "podTemplate": _present({"metadata": _present(stated), **_pod_template(container, pod, own)}),
    }
    return _present(fields)


def _present(fields: Object) -> Object:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def _pod_template(container: Any, pod: Any, own: Container[str]) -> Object:
    """Return `podTemplate.spec` and `podTemplate.container`, without fields that no ModelDeployment has."""
    spec = _fitting(pod, _template_schema()["spec"])
    spec = {name: value for name, value in spec.items() if value != _DEFAULTS.get(name)}
    spec["volumes"] = [
        volume
        for volume in spec.get("volumes", ())
        if volume["name"] not in own and any(source in volume for source in VOLUME_SOURCES)
    ]
    of_container = _container_template(container)
    for used, listed in (("volumeMounts", "volumes"), ("resourceClaims", "resourceClaims")):
        names = {item["name"] for item in spec.get(listed, ())}
        of_container[used] = [item for item in of_container.get(used, ()) if item["name"] in names]
    return {
        name: {field: value for field, value in values.items() if value not in ([], {})}
        for name, values in (("spec", spec), ("container", of_container))
    }


def _container_template(container: Any) -> Object:
    claims = part(container, "resources").get("claims")
    fields = _fitting(
        {**part(container), **({"resourceClaims": claims} if claims else {})}, _template_schema()["container"]
    )
    if part(fields, "securityContext").get("allowPrivilegeEscalation"):
        del fields["securityContext"]["allowPrivilegeEscalation"]
    return fields


@cache
def _template_schema() -> Mapping[str, Schema]:
    spec = structure.of_spec("modeldeployment")
    properties: Mapping[str, Schema] = spec["properties"]["podTemplate"]["properties"]
    return properties


def _fitting(value: Any, schema: Schema) -> Object:
    """Return the fields of a live map, without those and without list items that the schema does not permit."""
    fields = schema["properties"]
    known = {name: _known(child, fields[name]) for name, child in part(value).items() if name in fields}
    for name, child in known.items():
        if isinstance(child, list):
            items = fields[name]["items"]
            known[name] = [item for item in child if not any(structure.problems(item, items, name))]
    return {
        name: child for name, child in known.items() if not any(structure.problems(child, fields[name], name))
    }


def _known(value: Any, schema: Schema) -> Any:
    """Return the value without fields that the schema lacks, as the API server would prune it."""
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {
            name: _known(child, fields.get(name, others))
            for name, child in value.items()
            if child is not None and (name in fields or others)
        }
    return [_known(item, schema.get("items", {})) for item in value] if isinstance(value, list) else value
