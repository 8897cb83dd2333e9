"""Environment and command of a container, computed as the kubelet does (kubelet 1.36: makeEnvironmentVariables of
kubelet_pods.go, envvars.go; expansion: third_party/forked/golang/expansion)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object

Find = Callable[[str, str], Awaitable[Object | None]]
"""Returns a `ConfigMap` or `Secret` of the pod's namespace by kind and name, None if there is none."""


class ConfigError(Exception):
    """Raised if a container cannot be created (`CreateContainerConfigError`), with the kubelet's message."""


def expand(text: str, *variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the value of the first mapping that has it, and `$$` by `$`. Unknown names stay."""
    expanded = ""
    rest = text
    while (at := rest.find("$")) >= 0 and at + 1 < len(rest):
        expanded += rest[:at]
        rest = rest[at + 1 :]
        end = rest.find(")")
        if rest[0] == "(" and end > 0:
            name = rest[1:end]
            expanded += next((values[name] for values in variables if name in values), f"$({name})")
            rest = rest[end + 1 :]
        else:
            expanded += "$" if rest[0] == "$" else f"${rest[0]}"
            rest = rest[1:]
    return expanded + rest


def service_variables(services: Iterable[Object]) -> dict[str, str]:
    """Return the variables that pods get for these Services."""
    result: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP")
        if not address or address == "None":
            continue
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        ports = service["spec"]["ports"]
        result[f"{prefix}_SERVICE_HOST"] = address
        result[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
        result[f"{prefix}_PORT"] = f"{ports[0].get('protocol', 'TCP').lower()}://{address}:{ports[0]['port']}"
        for port in ports:
            protocol = port.get("protocol", "TCP")
            if port.get("name"):
                result[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
            link = f"{prefix}_PORT_{port['port']}_{protocol}"
            result[link] = f"{protocol.lower()}://{address}:{port['port']}"
            result[f"{link}_PROTO"] = protocol.lower()
            result[f"{link}_PORT"] = str(port["port"])
            result[f"{link}_ADDR"] = address
    return result


@dataclass(frozen=True, slots=True)
class Facts:
    """Values of the downward API."""

    pod: Object
    node: str
    pod_ip: str
    host_ip: str

    def field(self, path: str) -> str:
        """Return the value of a fieldRef. Raises ConfigError for an unsupported field."""
        meta = self.pod["metadata"]
        kind, _, key = path.removesuffix("']").partition("['")
        if kind in ("metadata.labels", "metadata.annotations"):
            pairs = meta.get(kind.removeprefix("metadata.")) or {}
            return (
                str(pairs.get(key, "")) if key else "\n".join(f'{k}="{v}"' for k, v in sorted(pairs.items()))
            )
        values = {
            "metadata.name": meta["name"],
            "metadata.namespace": meta["namespace"],
            "metadata.uid": meta["uid"],
            "spec.nodeName": self.node,
            "spec.serviceAccountName": self.pod["spec"].get("serviceAccountName", ""),
            "status.podIP": self.pod_ip,
            "status.podIPs": self.pod_ip,
            "status.hostIP": self.host_ip,
            "status.hostIPs": self.host_ip,
        }
        if path not in values:
            raise ConfigError(f"unsupported fieldPath: {path}")
        return str(values[path])


FROM: Final = (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))
KEYS: Final = (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret"))


async def variables(
    container: Mapping[str, Any], facts: Facts, find: Find, services: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container, including those of Services. Raises ConfigError."""
    namespace = facts.pod["metadata"]["namespace"]
    result = await _imported(container, find)
    for variable in container.get("env") or ():
        value = variable.get("value") or ""
        if value:
            # A variable can refer only to earlier ones.
            value = expand(value, result, services)
        elif source := variable.get("valueFrom"):
            referenced = await _from(source, facts, find, namespace)
            if referenced is None:
                continue
            value = referenced
        result[variable["name"]] = value
    return {**services, **result}


async def _imported(container: Mapping[str, Any], find: Find) -> dict[str, str]:
    """Return the variables of `envFrom`."""
    result: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for field, kind in FROM:
            if reference := source.get(field):
                content = await _content(find, kind, reference)
                result |= {source.get("prefix", "") + key: value for key, value in (content or {}).items()}
    return result


async def _from(source: Mapping[str, Any], facts: Facts, find: Find, namespace: str) -> str | None:
    if reference := source.get("fieldRef"):
        return facts.field(reference["fieldPath"])
    for field, kind in KEYS:
        if reference := source.get(field):
            content = await _content(find, kind, reference)
            if content is None:
                return None
            if reference["key"] in content:
                return content[reference["key"]]
            if reference.get("optional"):
                return None
            raise ConfigError(
                f"couldn't find key {reference['key']} in {kind} {namespace}/{reference['name']}"
            )
    raise ConfigError(f"not supported here: {', '.join(source)}")


async def _content(find: Find, kind: str, reference: Mapping[str, Any]) -> dict[str, str] | None:
    obj = await find(kind, reference["name"])
    if obj is None:
        if reference.get("optional"):
            return None
        raise ConfigError(f'{kind.lower()} "{reference["name"]}" not found')
    data = obj.get("data") or {}
    if kind == "Secret":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def words(
    container: Mapping[str, Any], entrypoint: Iterable[str], command: Iterable[str], env: Mapping[str, str]
) -> list[str]:
    """Return command and arguments of a container. Its `command` replaces both of the image, its `args` only one."""
    first = container.get("command")
    rest = container.get("args")
    if first:
        return [expand(word, env) for word in (*first, *(rest or ()))]
    return [*entrypoint, *([expand(word, env) for word in rest] if rest else command)]
