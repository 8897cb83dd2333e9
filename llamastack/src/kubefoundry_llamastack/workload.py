"""Decides the Deployment of a CR: today's render, or the current pod template.

A pod template changes only if its inputs do: the CR, the content of its ConfigMaps, the endpoints of its
ModelDeployments, or the refresh annotation. A newer operator alone (another tool, default image or script) changes
nothing that runs.

A ConfigMap records what was applied. It is trusted only while it matches the live object, so that permission to write
ConfigMaps does not decide which pods run.
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
"""Suffix of the ConfigMap with the record, after the CR's name."""

PROBES: Final = ("readinessProbe", "livenessProbe")
"""Parts of the server's container that the existing operator does not set: they are added with the next change of the
pods."""

NOT_IN_TEMPLATE: Final = ("podDisruptionBudget", "autoscaling")
"""Parts of spec.server that no pod template depends on."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was applied last: the pod template, and the digest of its inputs. adopted: whether the Deployment is still
    as the existing operator left it, including leftovers."""

    template: Object
    inputs: str
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """The previous state.

    user_config_version: resource version of the user's ConfigMap, with which the existing operator marked its pods.
    ca_stands: whether the current bundle is today's.
    tools: names of the tool's ConfigMaps that exist, or can be created.
    """

    user_config_version: str = ""
    ca_stands: bool = True
    tools: Collection[str] = ()


NOTHING: Final = Before()


@dataclass(frozen=True, slots=True)
class Workload:
    """The decision.

    body: the Deployment to apply.
    record: of it.
    write: whether an apply is needed.
    adopt: whether to take over what the existing operator owns of it.
    template_changed: whether pods are replaced.
    """

    body: Object
    record: Record
    write: bool
    adopt: bool = False
    template_changed: bool = False


def inputs(cr: Distribution, found: Found, image_override: str, raw_spec: Object) -> str:
    """The digest of the pod template's inputs. image_override: the operator's ConfigMap for the distribution's name;
    a default image of the operator's own is not an input."""
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
        # left out if absent, so that existing digests without it stay the same
        parts["providerSeconds"] = seconds
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def recorded(config_map: Object | None) -> Record | None:
    """What was applied last; None if there is no readable record."""
    data = (config_map or {}).get("data") or {}
    try:
        template = decode(data.get("template", "").encode(errors="replace"))
    except Unreadable:
        return None
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        return None
    return Record(template, str(data.get("inputs")), data.get("adopted") == "true")


def record_map(cr: Distribution, record: Record) -> Object:
    """The ConfigMap that keeps the record. An annotation on the Deployment would change its generation, which an
    adoption must not do (Kubernetes 1.36, pkg/registry/apps/deployment/strategy.go)."""
    data = {
        "template": json.dumps(record.template, sort_keys=True, separators=(",", ":")),
        "inputs": record.inputs,
        "adopted": str(record.adopted).lower(),
    }
    return child("ConfigMap", "v1", f"{cr.name}{RECORD}", cr, data=data)


def latched(cr: Distribution, live: Object | None) -> dict[str, str]:
    """Base URLs in the Deployment for the CR's ModelDeployments, by provider id."""
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
    """The wanted Deployment. live: the current one, ours. made_from: see `inputs`. record: what was applied."""
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
    """Whether the recorded pod template is the live one."""
    if live is None:
        return False
    if record.adopted or owned(live, MANAGER) is None:
        taken = record.adopted or bool(ownership.old_entries(live, cr.name))
        return taken and ownership.holds({"spec": {"template": record.template}}, live)
    return ownership.template_stands(record.template, live)


def _runs(template: Object, tools: Collection[str]) -> bool:
    """Whether the tool that this template mounts exists."""
    tool = tool_of(template)
    return not tool or tool in tools


def tool_of(template: Object) -> str:
    """Name of the tool's ConfigMap that a pod template mounts; empty if it mounts none."""
    for volume in template["spec"].get("volumes") or ():
        if volume.get("name") == "provider-tool":
            return str((volume.get("configMap") or {}).get("name", ""))
    return ""


def _adopt(cr: Distribution, body: Object, live: Object, known: Before) -> None:
    """What the existing operator rendered differently from the same CR stays: its start script, its marks, which are
    resource versions instead of digests, and a server without the probes that it does not set."""
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
        # A bundle that no CR requested was never marked.
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
    """With autoscaling, the autoscaler owns the number. While we still own it, we state the live value until the
    autoscaler has taken it over; an apply without it would reset it to 1."""
    if cr.spec.server.autoscaling is None:
        body["spec"]["replicas"] = cr.spec.replicas
    elif live is not None and "f:replicas" in ((owned(live, MANAGER) or {}).get("f:spec") or {}):
        body["spec"]["replicas"] = live["spec"].get("replicas", 1)


def digest(text: str) -> str:
    """Of a text that pods read at start."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
