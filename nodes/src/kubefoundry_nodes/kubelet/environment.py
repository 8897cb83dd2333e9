"""A container's variables and words, as the kubelet makes them (kubelet 1.36: makeEnvironmentVariables of
kubelet_pods.go, envvars.go; expansion: third_party/forked/golang/expansion)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk.api.kinds import Object

Find = Callable[[str, str], Awaitable[Object | None]]
"""A `ConfigMap` or `Secret` of the pod's namespace by kind and name; None where there is none."""


class ConfigError(Exception):
    """Why the container cannot be made, in the kubelet's words: `CreateContainerConfigError`."""


def expand(text: str, *variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the value in the first mapping that has it, else it stays as it is; `$$` becomes `$`."""
    made = ""
    rest = text
    while (at := rest.find("$")) >= 0 and at + 1 < len(rest):
        made += rest[:at]
        rest = rest[at + 1 :]
        end = rest.find(")")
        if rest[0] == "(" and end > 0:
            name = rest[1:end]
            made += next((one[name] for one in variables if name in one), f"$({name})")
            rest = rest[end + 1 :]
        else:
            made += "$" if rest[0] == "$" else f"${rest[0]}"
            rest = rest[1:]
    return made + rest


def service_variables(services: Iterable[Object]) -> dict[str, str]:
    """What every pod gets of these Services."""
    made: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP")
        if not address or address == "None":
            continue
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        ports = service["spec"]["ports"]
        made[f"{prefix}_SERVICE_HOST"] = address
        made[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
        made[f"{prefix}_PORT"] = f"{ports[0].get('protocol', 'TCP').lower()}://{address}:{ports[0]['port']}"
        for port in ports:
            protocol = port.get("protocol", "TCP")
            if port.get("name"):
                made[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
            link = f"{prefix}_PORT_{port['port']}_{protocol}"
            made[link] = f"{protocol.lower()}://{address}:{port['port']}"
            made[f"{link}_PROTO"] = protocol.lower()
            made[f"{link}_PORT"] = str(port["port"])
            made[f"{link}_ADDR"] = address
    return made


@dataclass(frozen=True, slots=True)
class Facts:
    """What a pod may ask about itself."""

    pod: Object
    node: str
    pod_ip: str
    host_ip: str

    def field(self, path: str) -> str:
        """The value of a fieldRef. Raises ConfigError for a field that pods cannot ask for."""
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
    """Of the container, those of Services included. Raises ConfigError."""
    namespace = facts.pod["metadata"]["namespace"]
    made: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for field, kind in FROM:
            if reference := source.get(field):
                content = await _content(find, kind, reference)
                made |= {source.get("prefix", "") + key: value for key, value in (content or {}).items()}
    for one in container.get("env") or ():
        value = one.get("value") or ""
        if value:
            # Only what stands before it: a later variable is no reference yet.
            value = expand(value, made, services)
        elif source := one.get("valueFrom"):
            found = await _from(source, facts, find, namespace)
            if found is None:
                continue
            value = found
        made[one["name"]] = value
    return {**services, **made}


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
    found = await find(kind, reference["name"])
    if found is None:
        if reference.get("optional"):
            return None
        raise ConfigError(f'{kind.lower()} "{reference["name"]}" not found')
    data = found.get("data") or {}
    if kind == "Secret":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return dict(data)


def words(
    container: Mapping[str, Any], entrypoint: Iterable[str], command: Iterable[str], env: Mapping[str, str]
) -> list[str]:
    """`command` and `args` of the container take precedence over the image's. A command drops both of the image."""
    first = container.get("command")
    rest = container.get("args")
    if first:
        return [expand(word, env) for word in (*first, *(rest or ()))]
    return [*entrypoint, *([expand(word, env) for word in rest] if rest else command)]
