"""Decides the Deployment of a CR: a new render, or the current pod template.

A pod template changes only if its inputs do: the CR, the content of its ConfigMaps, the endpoints of its
ModelDeployments, or the refresh annotation. A newer operator alone (another tool, default image or script)
does not replace running pods. Nor does another number of pods, or another Pod Security level of the namespace: what
they would change comes with the next change, or once the API server refuses to create pods.

A ConfigMap records the applied template. The operator trusts it only while it matches the live object, so
that permission to write ConfigMaps does not decide which pods run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kubefoundry_llamastack import ownership
from kubefoundry_llamastack.names import (
    CA_BUNDLE_HASH,
    MANAGER,
    USER_CONFIG_HASH,
    endpoint_variable,
)
from kubefoundry_llamastack.render import sidecars
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings, child
from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import owned, project
from kubefoundry_sdk._api.untrusted import part

RECORD: Final = "-applied"
"""Suffix of the ConfigMap with the record, after the CR's name."""

PROBES: Final = ("readinessProbe", "livenessProbe")
"""Parts of the server's container that the existing operator does not set. The next change of the pods adds them."""


@dataclass(frozen=True, slots=True)
class Record:
    """The last apply.

    Attributes:
        template: The pod template.
        inputs: Digest of the template's inputs.
        adopted: Whether the Deployment is still as the existing operator left it, including leftovers.
    """

    template: Object
    inputs: str
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class PreviousState:
    """The state before this reconcile.

    Attributes:
        user_config_version: Resource version of the user's ConfigMap, with which the existing operator
            marked its pods.
        is_ca_current: Whether the stored bundle is the one to mount now.
        tools: Names of the tool's ConfigMaps that exist, or can be created.
        digests: Result of `earlier_digests`.
        is_refused: Whether the Pod Security level `restricted` refuses pods of the current template. It may be the
            API server's default, which no label shows.
    """

    user_config_version: str = ""
    is_ca_current: bool = True
    tools: Collection[str] = ()
    digests: Collection[str] = ()
    is_refused: bool = False


NO_PREVIOUS_STATE: Final = PreviousState()


@dataclass(frozen=True, slots=True)
class Workload:
    """The decision about a Deployment.

    Attributes:
        body: The Deployment to apply.
        record: The record to store before the apply.
        write: Whether an apply is needed.
        adopt: Whether to take over the existing operator's fields.
        template_changed: Whether pods are replaced.
    """

    body: Object
    record: Record
    write: bool
    adopt: bool = False
    template_changed: bool = False


def read_record(config_map: Object | None) -> Record | None:
    """Return the record of the last apply, or None if there is no readable one."""
    data = (config_map or {}).get("data") or {}
    try:
        template = decode(data.get("template", "").encode(errors="replace"))
    except Unreadable:
        return None
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        return None
    return Record(template, str(data.get("inputs")), data.get("adopted") == "true")


def record_config_map(cr: Distribution, record: Record) -> Object:
    """Render the ConfigMap with the record.

    An annotation on the Deployment would change its generation, which an adoption must not do (Kubernetes
    1.36, pkg/registry/apps/deployment/strategy.go).
    """
    data = {
        "template": json.dumps(record.template, sort_keys=True, separators=(",", ":")),
        "inputs": record.inputs,
        "adopted": str(record.adopted).lower(),
    }
    return child("ConfigMap", "v1", f"{cr.name}{RECORD}", cr, data=data)


def server_variables(cr: Distribution, live: Object | None) -> dict[str, str]:
    """Return the variables of the Deployment's server that have a value.

    It is the first container if the CR has just renamed it.
    """
    containers = part(live, "spec", "template", "spec").get("containers") or [{}]
    name = cr.spec.server.container_spec.name
    server = next((item for item in containers if item.get("name") == name), containers[0])
    return {item["name"]: str(item["value"]) for item in server.get("env") or () if item.get("value")}


def latched_urls(cr: Distribution, live: Object | None) -> dict[str, str]:
    """Return the base URLs in the Deployment for the CR's ModelDeployments, by provider id."""
    values = server_variables(cr, live)
    return {
        item.id: values[endpoint_variable(item.id)]
        for item in cr.spec.server.model_deployments
        if endpoint_variable(item.id) in values
    }


def decide(
    cr: Distribution,
    pod_inputs: PodInputs,
    settings: Settings,
    inputs_digest: str,
    live: Object | None,
    record: Record | None,
    before: PreviousState = NO_PREVIOUS_STATE,
) -> Workload:
    """Decide the Deployment to apply.

    Args:
        cr: The CR.
        pod_inputs: Its resolved dependencies.
        settings: The operator's own configuration.
        inputs_digest: Result of `digest_inputs`.
        live: The current Deployment, which is ours. None if there is none.
        record: The record of the last apply.
        before: The state before this reconcile.
    """
    if before.is_refused:
        pod_inputs = replace(pod_inputs, restricted=True)
    elif live is not None and record is None:
        # A label of the namespace alone replaces no pods, nor does a flag of the operator.
        template = live["spec"]["template"]
        pod_inputs = replace(
            pod_inputs,
            restricted=_is_restricted(template),
            native_sidecars=sidecars.is_native(template, pod_inputs.native_sidecars),
        )
    body = deployment(cr, pod_inputs, settings)
    keeps_template = (
        record is not None
        and record.inputs in {inputs_digest, *before.digests}
        and _matches_live(cr, record, live)
        # Without its tool a template of an earlier operator cannot start new pods.
        and _has_tool(record.template, before.tools)
        and not (before.is_refused and not _is_restricted(record.template))
    )
    if record is not None and keeps_template:
        body["spec"]["template"] = record.template
        # An upgrade alone writes no record.
        inputs_digest = record.inputs
    elif live is not None and record is None:
        _adopt(cr, body, live, before)
    _set_replicas(cr, body, live, least=0 if record is not None and record.adopted else 1)
    template = body["spec"]["template"]
    if live is None:
        return Workload(body, Record(template, inputs_digest), write=True, template_changed=True)
    if owned(live, MANAGER) is None and ownership.old_entries(live, cr.name):
        # The existing operator made it, and we have not written to it yet.
        is_unchanged = ownership.contains(body, live)
        new_record = Record(template, inputs_digest, adopted=is_unchanged)
        return Workload(
            body, new_record, write=not is_unchanged, adopt=True, template_changed=not is_unchanged
        )
    # After an adoption without a change the live object has leftovers. They stay until the next change.
    adopted = bool(keeps_template and record and record.adopted and _differs_only_in_scale(body, live))
    write = not ownership.contains(body, live) if adopted else ownership.differs(body, live)
    if adopted and write:
        body = _with_leftovers(body, live)
    return Workload(
        body, Record(template, inputs_digest, adopted), write, template_changed=not keeps_template
    )


def _differs_only_in_scale(body: Object, live: Object) -> bool:
    """Check whether the live Deployment has everything in the body, apart from the number of pods."""
    spec = {**body["spec"], "replicas": live["spec"].get("replicas")}
    return ownership.contains({**body, "spec": spec}, live)


def _with_leftovers(body: Object, live: Object) -> Object:
    """Add all that we own of an adopted Deployment, because dropping leftovers would replace the pods."""
    fields = (owned(live, MANAGER) or {}).get("f:spec")
    if not fields:
        return body
    kept = {**project(live["spec"], fields), "replicas": body["spec"]["replicas"]}
    return {**body, "spec": {**body["spec"], **kept}}


def _matches_live(cr: Distribution, record: Record, live: Object | None) -> bool:
    """Check whether the recorded pod template is the live one."""
    if live is None:
        return False
    # An adopted Deployment has leftovers, so an exact comparison would never match.
    if record.adopted or owned(live, MANAGER) is None:
        is_adoptable = record.adopted or bool(ownership.old_entries(live, cr.name))
        return is_adoptable and ownership.contains({"spec": {"template": record.template}}, live)
    return ownership.template_matches(record.template, live)


def _has_tool(template: Object, tools: Collection[str]) -> bool:
    """Check whether the tool that this template mounts exists."""
    tool = tool_of(template)
    return not tool or tool in tools


def _is_restricted(template: Object) -> bool:
    """Check whether the pods have the settings of the Pod Security level `restricted`."""
    security = template["spec"].get("securityContext") or {}
    return bool(security.get("runAsNonRoot") and security.get("seccompProfile"))


def tool_of(template: Object) -> str:
    """Return the name of the tool's ConfigMap that a pod template mounts, empty if it mounts none."""
    for volume in template["spec"].get("volumes") or ():
        if volume.get("name") == "provider-tool":
            return str((volume.get("configMap") or {}).get("name", ""))
    return ""


def _adopt(cr: Distribution, body: Object, live: Object, previous: PreviousState) -> None:
    """Keep the existing operator's values in the pod template, because other values would replace the pods."""
    template, live_template = body["spec"]["template"], live["spec"]["template"]
    annotations = template["metadata"].get("annotations", {})
    live_annotations = live_template["metadata"].get("annotations") or {}
    _keep_user_config_hash(cr, annotations, live_annotations, previous)
    if previous.is_ca_current:
        # A bundle with other content has to replace the pods, so its new hash stays.
        _keep_ca_hash(cr, annotations, live_annotations)
    if not annotations:
        # A render without annotations has no map either.
        template["metadata"].pop("annotations", None)
    container = template["spec"]["containers"][0]
    for live_container in live_template["spec"].get("containers") or ():
        # Only the server has a counterpart in the render: other containers were injected.
        if live_container.get("name") == container["name"]:
            _drop_new_probes(container, live_container)
            _keep_start_script(cr, container, live_container)


def _keep_user_config_hash(
    cr: Distribution, annotations: Object, live_annotations: Object, previous: PreviousState
) -> None:
    """Keep the resource version that the existing operator wrote, if the user's ConfigMap is unchanged."""
    user_config = cr.spec.server.user_config
    if user_config is None:
        return
    if (
        live_annotations.get(USER_CONFIG_HASH)
        == f"{previous.user_config_version}-{user_config.config_map_name}"
    ):
        annotations[USER_CONFIG_HASH] = live_annotations[USER_CONFIG_HASH]


def _keep_ca_hash(cr: Distribution, annotations: Object, live_annotations: Object) -> None:
    """Keep the existing operator's hash of the bundle, or its absence."""
    if CA_BUNDLE_HASH not in annotations:
        return
    if CA_BUNDLE_HASH not in live_annotations:
        # The existing operator marks no bundle that the CR does not name.
        del annotations[CA_BUNDLE_HASH]
    elif str(live_annotations[CA_BUNDLE_HASH]).endswith(f"-{cr.name}-ca-bundle"):
        annotations[CA_BUNDLE_HASH] = live_annotations[CA_BUNDLE_HASH]


def _drop_new_probes(container: Object, live_container: Object) -> None:
    """Drop the probes that the existing operator does not set."""
    for probe in PROBES:
        if probe not in live_container:
            del container[probe]


def _keep_start_script(cr: Distribution, container: Object, live_container: Object) -> None:
    """Keep the existing operator's script for a user's configuration."""
    if cr.extended or cr.spec.server.container_spec.command or cr.spec.server.user_config is None:
        return
    command = live_container.get("command") or []
    if command[:2] == ["/bin/sh", "-c"] and len(command) == 3:
        container["command"] = command


def _set_replicas(cr: Distribution, body: Object, live: Object | None, *, least: int) -> None:
    """Set the number of pods, which an autoscaler owns if there is one."""
    if cr.spec.server.autoscaling is None:
        body["spec"]["replicas"] = cr.spec.replicas
    elif (replicas := kept_replicas(live, least=least)) is not None:
        body["spec"]["replicas"] = replicas


def kept_replicas(live: Object | None, *, least: int = 1) -> int | None:
    """Return the number of pods to apply beside an autoscaler, None once the field is not ours.

    Until the autoscaler has taken it over, we apply the live value. An apply without the field would reset it to 1.
    Without any pod an autoscaler does nothing, so only an adoption, which changes nothing, keeps our 0.
    """
    if live is None or "f:replicas" not in ((owned(live, MANAGER) or {}).get("f:spec") or {}):
        return None
    return max(least, int(live["spec"].get("replicas", 1)))


def digest(text: str) -> str:
    """Digest a text that pods read at start."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
