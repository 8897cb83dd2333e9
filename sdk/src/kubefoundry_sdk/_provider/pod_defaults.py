"""An administrator's settings for the pods of all models: a mirror of the hub, a proxy, and a CA bundle.

They are defaults of fields that a user can set: variables in `env`, and a ConfigMap in `podTemplate`. So a provider
renders them as it renders these fields. They take part in each render, also that of an earlier spec, and an
annotation on the upstream object keeps those with which it was written. So a changed flag writes nothing to a running
model, also when its spec is edited (contract §4).
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.foreign_json import decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.pod_spec import CA_VOLUME
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.contract import Deployment, PodDefaults

HF_ENDPOINT: Final = "pod_hf_endpoint"
HTTP_PROXY: Final = "pod_http_proxy"
HTTPS_PROXY: Final = "pod_https_proxy"
NO_PROXY: Final = "pod_no_proxy"
CA_BUNDLE: Final = "pod_ca_bundle"

FLAGS: Final = (HF_ENDPOINT, HTTP_PROXY, HTTPS_PROXY, NO_PROXY, CA_BUNDLE)
"""Attributes of the parsed flags."""

CA_PATH: Final = "/etc/kubefoundry/ca"
CA_FILE: Final = "ca-bundle.crt"

CA_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE")
"""OpenSSL, httpx and Go read the first one; requests, curl and boto3 (S3) read one of the others."""

IN_CLUSTER: Final = "localhost,127.0.0.1,::1,.svc,.cluster.local"
"""NO_PROXY if only a proxy is set. Engines call themselves, and Services of the cluster."""

_PROXY: Final = re.compile(formats.ENDPOINT_URL)
_HOSTS: Final = re.compile(formats.NO_PROXY)
_CA_BUNDLE: Final = re.compile(formats.CA_BUNDLE)
_CA_BUNDLE_LENGTHS: Final = re.compile(formats.CA_BUNDLE_LENGTHS)
_LOGIN: Final = re.compile(r"^(https?://)?.*@", re.DOTALL)


def stated(arguments: argparse.Namespace) -> PodDefaults:
    """Return the settings of parsed flags."""
    proxies = {
        "HTTP_PROXY": getattr(arguments, HTTP_PROXY),
        "HTTPS_PROXY": getattr(arguments, HTTPS_PROXY),
    }
    no_proxy = getattr(arguments, NO_PROXY) or (IN_CLUSTER if any(proxies.values()) else "")
    variables = {"HF_ENDPOINT": getattr(arguments, HF_ENDPOINT), **proxies, "NO_PROXY": no_proxy}
    return PodDefaults(
        tuple((name, value) for name, value in variables.items() if value), getattr(arguments, CA_BUNDLE)
    )


def packed(defaults: PodDefaults) -> str:
    """Return the settings as the text of an annotation, empty if there are none."""
    settings = {**dict(defaults.variables), **({_BUNDLE: defaults.ca_bundle} if defaults.ca_bundle else {})}
    return json.dumps(settings, separators=(",", ":")) if settings else ""


def unpacked(text: Any) -> PodDefaults:
    """Return the settings of an annotation that others may have written; none if it is absent or invalid."""
    try:
        settings = decode(str(text or "{}").encode(errors="replace"))
        if not isinstance(settings, dict) or not settings.keys() <= _READ.keys():
            return PodDefaults()
        for name, value in settings.items():
            if not isinstance(value, str) or not value or not _READ[name](value):
                return PodDefaults()
    except (ValueError, argparse.ArgumentTypeError):
        return PodDefaults()
    variables = tuple((name, value) for name, value in settings.items() if name != _BUNDLE)
    return PodDefaults(variables, settings.get(_BUNDLE, ""))


def trusted(
    recorded: PodDefaults, current: PodDefaults, live: Object | None, spec: ModelDeploymentSpec
) -> PodDefaults:
    """Return the recorded settings as far as the live object has them, and the current ones instead of others.

    Whoever can write annotations there could bring in or take away a value otherwise. So the current ones also count
    if nothing is recorded and the live object has them. The variables of the proxy belong together.

    Args:
        recorded: The settings of the annotation.
        current: The administrator's settings.
        live: The live object; None if it is gone.
        spec: The spec that was applied, which may have replaced settings.
    """
    if live is None:
        return recorded
    items = list(_named({key: value for key, value in live.items() if key != "metadata"}))
    stated = {(str(item["name"]).upper(), str(item.get("value"))) for item in items}
    variables: list[tuple[str, str]] = []
    for group in _GROUPS:
        before, now = (
            [item for item in settings.variables if item[0] in group] for settings in (recorded, current)
        )
        added = [item for item in before or now if not _sets(spec, item[0])]
        is_seen = stated.issuperset(added) and bool(before or added)
        variables += before if is_seen == bool(before) else now
    is_seen = _has_bundle(items, recorded.ca_bundle or current.ca_bundle)
    is_kept = _has_own_bundle(spec) or is_seen == bool(recorded.ca_bundle)
    return PodDefaults(tuple(variables), recorded.ca_bundle if is_kept else current.ca_bundle)


def _has_bundle(items: Sequence[Object], bundle: str) -> bool:
    """Check whether an object has that CA bundle, or lacks only its volume, which somebody removed."""
    name = bundle.partition("/")[0]
    volumes = [item for item in items if item["name"] == CA_VOLUME and "mountPath" not in item]
    if volumes:
        return any(mapping(volume.get("configMap")).get("name") == name for volume in volumes)
    return any(item.get("value") == f"{CA_PATH}/{CA_FILE}" for item in items)


def _named(value: Any) -> Iterator[Object]:
    """Yield all maps in a value that have a name."""
    if isinstance(value, dict) and "name" in value:
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _named(item)


def url(text: str) -> str:
    """Return the URL of a mirror or proxy. Raise ArgumentTypeError for any other text."""
    if text and not _PROXY.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{_without_login(text)!r} is not http(s)://HOST[:PORT][/PATH]. A user and a password do not "
            "belong in a flag, which everybody can read: set them in env of the model, from a Secret"
        )
    return text


def hosts(text: str) -> str:
    """Return the hosts of NO_PROXY. Raise ArgumentTypeError for any other text."""
    if text and not _HOSTS.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{_without_login(text)!r} is not a list of hosts and ranges, separated by commas without blanks"
        )
    return text


def ca_bundle(text: str) -> str:
    """Return `CONFIGMAP/KEY`. Raise ArgumentTypeError for any other text."""
    if text and not (_CA_BUNDLE.fullmatch(text) and _CA_BUNDLE_LENGTHS.fullmatch(text)):
        raise argparse.ArgumentTypeError(
            f"{_without_login(text)!r} is not CONFIGMAP/KEY, of which each has 253 characters at most"
        )
    return text


def _without_login(text: str) -> str:
    """Return the text without what is before an `@`, which may be a password."""
    return _LOGIN.sub(r"\1***@", text)


_BUNDLE: Final = "caBundle"
_READ: Final[Mapping[str, Callable[[str], str]]] = {
    "HF_ENDPOINT": url,
    "HTTP_PROXY": url,
    "HTTPS_PROXY": url,
    "NO_PROXY": hosts,
    _BUNDLE: ca_bundle,
}
"""Readers of the recorded settings."""

_GROUPS: Final = (("HF_ENDPOINT",), ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"))


def applied(
    defaults: PodDefaults, deployment: Deployment, problems: Callable[[Deployment], Sequence[str]]
) -> tuple[Deployment, tuple[str, ...]]:
    """Return the deployment with the defaults of the fields that it does not set, and notes about those left out.

    Args:
        defaults: The administrator's settings.
        deployment: The deployment.
        problems: Returns the provider's problems with a deployment (`supports`).
    """
    steps = (
        (_with_variables, ", ".join(name for name, _ in defaults.variables)),
        (_with_bundle, "the CA bundle" if defaults.ca_bundle else ""),
    )
    notes = []
    for step, subject in steps:
        spec = step(deployment.spec, defaults) if subject else deployment.spec
        if spec is deployment.spec:
            continue
        changed = replace(deployment, spec=spec)
        if set(problems(changed)) <= set(problems(deployment)):
            deployment = changed
        else:
            notes.append(f"The pods of this model do not get {subject} of the provider's flags")
    return deployment, tuple(notes)


def _with_variables(spec: ModelDeploymentSpec, defaults: PodDefaults) -> ModelDeploymentSpec:
    """Return the spec with the variables that `env` does not set in either case.

    curl reads only the lower-case http_proxy, and Python prefers the lower-case names of all three.
    """
    added = [
        {"name": name, "value": value}
        for variable, value in defaults.variables
        if not _sets(spec, variable)
        for name in (variable, *((variable.lower(),) if variable.endswith("_PROXY") else ()))
    ]
    return spec.model_copy(update={"env": [*spec.env, *added]}) if added else spec


def _with_bundle(spec: ModelDeploymentSpec, defaults: PodDefaults) -> ModelDeploymentSpec:
    """Return the spec with the CA bundle as a volume, a mount and variables, unless it has a bundle of its own."""
    pod, container = spec.pod_template.spec, spec.pod_template.container
    if _has_own_bundle(spec):
        return spec
    name, _, key = defaults.ca_bundle.partition("/")
    source = {"name": name, "items": [{"key": key, "path": CA_FILE}]}
    mount = {"name": CA_VOLUME, "mountPath": CA_PATH, "readOnly": True}
    template = spec.pod_template.model_copy(
        update={
            "spec": _extended(pod, "volumes", {"name": CA_VOLUME, "configMap": source}),
            "container": _extended(container, "volume_mounts", mount),
        }
    )
    variables = [
        {"name": variable, "value": f"{CA_PATH}/{CA_FILE}"}
        for variable in CA_VARIABLES
        if not _sets(spec, variable)
    ]
    return spec.model_copy(update={"pod_template": template, "env": [*spec.env, *variables]})


def _has_own_bundle(spec: ModelDeploymentSpec) -> bool:
    """Check whether a spec has a volume of the bundle's name, or one at, above or below its path.

    Neither of two read-only volumes can be mounted in the other.
    """
    template, stored = spec.pod_template, spec.model.storage.volumes
    names = [volume.get("name") for volume in template.spec.volumes] + [volume.name for volume in stored]
    paths = [mount.get("mountPath") or "" for mount in template.container.volume_mounts]
    paths += [volume.path for volume in stored]
    return CA_VOLUME in names or any(path and _overlaps(path) for path in paths)


def _overlaps(path: str) -> bool:
    """Check whether a path is that of the bundle, above or below it."""
    # normpath keeps two leading slashes.
    place = posixpath.normpath("/" + path.lstrip("/"))
    return posixpath.commonpath((place, CA_PATH)) in (place, CA_PATH)


def _extended(part: Any, field: str, item: Object) -> Any:
    return part.model_copy(update={field: [*getattr(part, field), item]})


def _sets(spec: ModelDeploymentSpec, variable: str) -> bool:
    return any(str(item.get("name")).upper() == variable for item in spec.env)
