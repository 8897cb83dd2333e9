"""What the Deployment of a CR is to be now: today's render, or the pod template that stands.

A pod template changes only when what it is made from does: the CR, the content of its ConfigMaps, the endpoints of
its ModelDeployments, or the refresh annotation. A newer operator alone (another tool, default image or script)
changes nothing that runs.

What was applied is recorded in a ConfigMap. It is believed only while it is what stands: who may write ConfigMaps
must not thereby decide what pods run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack import ownership
from kubefoundry_llamastack.names import (
    CA_BUNDLE_HASH,
    MANAGER,
    PROVIDER_SECONDS_ANNOTATION,
    USER_CONFIG_HASH,
    endpoint_variable,
)
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, Found, Settings, child
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.foreign_json import Unreadable, decode
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.managed_fields import owned

RECORD: Final = "-applied"
"""What follows a CR's name in that of the ConfigMap with its record."""

PROBES: Final = ("readinessProbe", "livenessProbe")
"""Of the server's container, that the existing operator does not make: they come with the next change of the pods."""

NOT_IN_TEMPLATE: Final = ("podDisruptionBudget", "autoscaling")
"""Parts of spec.server that no pod template depends on."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was applied last: the pod template, and the digest of what it was made from. adopted: whether the
    Deployment is still as the existing operator left it, with whatever it did not clean up."""

    template: Object
    inputs: str
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of the time before. user_config_version: resource version of the user's ConfigMap, by which the
    existing operator marked its pods. ca_stands: whether the bundle that stands is today's. tools: names of the
    ConfigMaps with a tool that are there, or can be made."""

    user_config_version: str = ""
    ca_stands: bool = True
    tools: Collection[str] = ()


NOTHING: Final = Before()


@dataclass(frozen=True, slots=True)
class Workload:
    """body: the Deployment as it is to be applied. record: of it. write: whether an apply is needed. adopt: whether
    what the existing operator owns of it is to be made ours. template_changed: whether pods are replaced."""

    body: Object
    record: Record
    write: bool
    adopt: bool = False
    template_changed: bool = False


def inputs(cr: Distribution, found: Found, image_override: str, raw_spec: Object) -> str:
    """The digest of what the pod template is made from. image_override: what the operator's ConfigMap says for the
    distribution's name; a default image of the operator's own is not part of it."""
    server = {
        key: value for key, value in (raw_spec.get("server") or {}).items() if key not in NOT_IN_TEMPLATE
    }
    if isinstance(server.get("storage"), dict):
        server["storage"] = {key: value for key, value in server["storage"].items() if key != "size"}
    parts = {
        "server": server,
        "several": cr.spec.replicas > 1,
        "image": image_override,
        "userConfig": found.user_config.digest if found.user_config else "",
        "caBundle": found.ca_digest or "",
        "endpoints": dict(found.endpoints),
        "restricted": found.restricted and cr.extended,
        "refresh": cr.annotations.get(names.REFRESH_ANNOTATION, ""),
    }
    if seconds := cr.annotations.get(PROVIDER_SECONDS_ANNOTATION):
        # left out where it is absent: the digests of those that run without it stay what they were
        parts["providerSeconds"] = seconds
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def recorded(config_map: Object | None) -> Record | None:
    """What was applied last; None where there is no readable record."""
    data = (config_map or {}).get("data") or {}
    try:
        template = decode(data.get("template", "").encode())
    except Unreadable:
        return None
    if not isinstance(template, dict):
        return None
    return Record(template, str(data.get("inputs")), data.get("adopted") == "true")


def record_map(cr: Distribution, record: Record) -> Object:
    """The ConfigMap that keeps the record. An annotation of the Deployment would change its generation, which a
    take-over must not (Kubernetes 1.36, pkg/registry/apps/deployment/strategy.go)."""
    data = {
        "template": json.dumps(record.template, sort_keys=True, separators=(",", ":")),
        "inputs": record.inputs,
        "adopted": str(record.adopted).lower(),
    }
    return child("ConfigMap", "v1", f"{cr.name}{RECORD}", cr, data=data)


def latched(cr: Distribution, live: Object | None) -> dict[str, str]:
    """Base URLs by provider id that the Deployment has for the CR's ModelDeployments."""
    containers = ((((live or {}).get("spec") or {}).get("template") or {}).get("spec") or {}).get(
        "containers"
    )
    values = {
        item["name"]: str(item["value"])
        for container in containers or ()
        for item in container.get("env") or ()
        if item.get("value")
    }
    return {
        item.id: values[endpoint_variable(item.id)]
        for item in cr.spec.server.model_deployments
        if endpoint_variable(item.id) in values
    }


def decide(
    cr: Distribution,
    found: Found,
    settings: Settings,
    made_from: str,
    live: Object | None,
    record: Record | None,
    before: Before = NOTHING,
) -> Workload:
    """The Deployment to have. live: the one that stands, ours. made_from: see `inputs`. record: what was applied."""
    body = deployment(cr, found, settings)
    keep = record is not None and record.inputs == made_from and _stands(cr, record, live)
    keep = keep and record is not None and _runs(record.template, before.tools)
    if record is not None and keep:
        body["spec"]["template"] = record.template
    elif live is not None and record is None:
        _adopt(cr, body, live, before)
    _replicas(cr, body, live)
    template = body["spec"]["template"]
    if live is None:
        return Workload(body, Record(template, made_from), write=True, template_changed=True)
    if owned(live, MANAGER) is None and ownership.old_entries(live, cr.name):
        stands = ownership.holds(body, live)
        made = Record(template, made_from, adopted=stands)
        return Workload(body, made, write=not stands, adopt=True, template_changed=not stands)
    adopted = bool(keep and record and record.adopted and ownership.holds(body, live))
    write = not adopted and ownership.differs(body, live)
    return Workload(body, Record(template, made_from, adopted), write, template_changed=not keep)


def _stands(cr: Distribution, record: Record, live: Object | None) -> bool:
    """Whether the pod template that was recorded is the one that stands."""
    if live is None:
        return False
    if record.adopted or owned(live, MANAGER) is None:
        taken = record.adopted or bool(ownership.old_entries(live, cr.name))
        return taken and ownership.holds({"spec": {"template": record.template}}, live)
    return ownership.template_stands(record.template, live)


def _runs(template: Object, tools: Collection[str]) -> bool:
    """Whether the tool that the pods of this template mount is there."""
    tool = tool_of(template)
    return not tool or tool in tools


def tool_of(template: Object) -> str:
    """Name of the ConfigMap with the tool that a pod template mounts; empty where it mounts none."""
    for volume in template["spec"].get("volumes") or ():
        if volume.get("name") == "provider-tool":
            return str((volume.get("configMap") or {}).get("name", ""))
    return ""


def _adopt(cr: Distribution, body: Object, live: Object, known: Before) -> None:
    """What the existing operator made from the same CR in other words stays in its words: its start script, its
    marks, which are resource versions instead of digests, and a server without the probes that it does not make."""
    template, standing = body["spec"]["template"], live["spec"]["template"]
    wanted = template["metadata"].get("annotations", {})
    before = standing["metadata"].get("annotations") or {}
    user_config = cr.spec.server.user_config
    if (
        user_config
        and before.get(USER_CONFIG_HASH) == f"{known.user_config_version}-{user_config.config_map_name}"
    ):
        wanted[USER_CONFIG_HASH] = before[USER_CONFIG_HASH]
    if not known.ca_stands:
        pass
    elif CA_BUNDLE_HASH in wanted and str(before.get(CA_BUNDLE_HASH, "")).endswith(f"-{cr.name}-ca-bundle"):
        wanted[CA_BUNDLE_HASH] = before[CA_BUNDLE_HASH]
    elif CA_BUNDLE_HASH in wanted and CA_BUNDLE_HASH not in before:
        # A bundle that no CR asked for was never marked.
        del wanted[CA_BUNDLE_HASH]
    if not wanted:
        template["metadata"].pop("annotations", None)
    given = cr.spec.server.container_spec
    [container] = template["spec"]["containers"]
    for other in standing["spec"].get("containers") or ():
        if other.get("name") != container["name"]:
            continue
        for probe in PROBES:
            if probe not in other:
                del container[probe]
        command = other.get("command") or []
        script = command[:2] == ["/bin/sh", "-c"] and len(command) == 3
        if script and user_config and not cr.extended and not given.command:
            container["command"] = command


def _replicas(cr: Distribution, body: Object, live: Object | None) -> None:
    """With autoscaling the number is the autoscaler's. One that we own is stated as it stands until it has taken it
    over: an apply without it would set it back to 1."""
    if cr.spec.server.autoscaling is None:
        body["spec"]["replicas"] = cr.spec.replicas
    elif live is not None and "f:replicas" in ((owned(live, MANAGER) or {}).get("f:spec") or {}):
        body["spec"]["replicas"] = live["spec"].get("replicas", 1)


def digest(text: str) -> str:
    """Of a text that pods read when they start."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
