"""Read the manifests that are packaged with the command line, so that an installation downloads nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.suggestion import suggestion
from kubefoundry_cli.yaml_file import documents_in
from kubefoundry_sdk._api import foreign_text
from kubefoundry_sdk._api.images import OURS, in_registry
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.untrusted import part

HERE: Final = Path(__file__).parent
MIRRORED: Final = frozenset(("provider-direct", "provider-dynamo", "provider-kuberay", "llamastack"))
"""Containers of our components that have the flag --mirror, because they have default images."""


def crds() -> list[Object]:
    """Return our CRDs, except those of LlamaStack."""
    return [
        crd for path in sorted((_root() / "crds").glob("*.yaml")) for crd in _documents(path) if "spec" in crd
    ]


def controller() -> list[Object]:
    """Return namespace, roles of users, core and selector."""
    folder = _root() / "manifests"
    return [
        obj
        for name in ("namespace", "users", "parts/core", "provider-selector")
        for obj in _documents(folder / f"{name}.yaml")
    ]


def protection() -> Object:
    """Return the identity of core's webhook configuration, which refuses to delete the CRDs while models exist."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "kubefoundry-crds"},
    }


def providers() -> list[str]:
    """Return the names of the providers whose manifest is included."""
    return sorted(path.stem for path in (_root() / "manifests" / "providers").glob("*.yaml"))


def provider(name: str) -> list[Object]:
    """Return the manifest of an included provider. Raises Failure for a name that is not one of `providers`."""
    if name not in providers():
        raise Failure(
            f"provider '{foreign_text.shown(name)}' does not come with this command line; it has "
            f"{', '.join(providers())}. Name a manifest's file or https URL for another one"
            f"{suggestion(name, providers())}",
            Exit.USAGE,
        )
    return _documents(_root() / "manifests" / "providers" / f"{name}.yaml")


def parsed(text: str, origin: str) -> list[Object]:
    """Return the objects of a manifest. Raises Failure if the text is not a manifest."""
    objects = documents_in(text, origin)
    for obj in objects:
        if not _is_object(obj):
            raise Failure(f"{origin} holds something that is not a Kubernetes object with a name", Exit.USAGE)
        if wrong := _wrong_role(obj) or _wrong_deployment(obj) or _wrong_definition(obj):
            raise Failure(f"{origin}: {obj['kind']} {obj['metadata']['name']}: {wrong}", Exit.USAGE)
    if not objects:
        raise Failure(f"{origin} holds no object", Exit.USAGE)
    return objects


def released(text: str, origin: str) -> list[Object]:
    """Return the objects of a release's install.yaml. Raises Failure if the text is another manifest."""
    objects = parsed(text, origin)
    if not any(obj["metadata"]["name"] == MODEL_DEPLOYMENTS.crd for obj in objects):
        raise Failure(
            f"{origin} is not the install.yaml of a release: it has no CustomResourceDefinition "
            f"{MODEL_DEPLOYMENTS.crd}; name the folder of a release, or its install.yaml",
            Exit.USAGE,
        )
    return objects


def _is_object(obj: Any) -> bool:
    """Check whether a document is an object with a name, and with texts in all fields that name it."""
    if not isinstance(obj, dict) or not isinstance(metadata := obj.get("metadata"), dict):
        return False
    names = (obj.get("apiVersion"), obj.get("kind"), metadata.get("name"))
    # A null namespace is none, as for kubectl.
    return all(isinstance(text, str) and text for text in names) and isinstance(
        metadata.get("namespace") or "", str
    )


def _wrong_definition(obj: Object) -> str:
    """Return why the versions of a CustomResourceDefinition cannot be read; empty if they can."""
    if obj["kind"] != CRDS.kind:
        return ""
    versions = part(obj, "spec").get("versions")
    if not isinstance(versions, list) or not all(
        isinstance(version, dict) and isinstance(version.get("name"), str) for version in versions
    ):
        return "spec.versions is not a list of versions with names"
    return ""


def _wrong_role(obj: Object) -> str:
    """Return why the rights of a role or binding cannot be read; empty if they can."""
    if obj["kind"] in ("Role", "ClusterRole"):
        return _wrong_rules(obj.get("rules") or [])
    is_binding = obj["kind"] in ("RoleBinding", "ClusterRoleBinding")
    if is_binding and not isinstance(part(obj, "roleRef").get("name"), str):
        return "roleRef names no role"
    return ""


def _wrong_rules(rules: Any) -> str:
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        return "rules is not a list of objects"
    for rule in rules:
        for key in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"):
            if not _are_texts(rule.get(key) or []):
                return f"{key} of a rule is not a list of texts"
    return ""


def _wrong_deployment(obj: Object) -> str:
    """Return why the containers of a Deployment cannot be read; empty if they can."""
    if obj["kind"] != DEPLOYMENTS.kind:
        return ""
    containers = part(obj, "spec", "template", "spec").get("containers")
    if not isinstance(containers, list) or not containers:
        return "spec.template.spec.containers is not a list of containers"
    for container in containers:
        if not isinstance(container, dict) or not all(
            isinstance(container.get(name), str) for name in ("name", "image")
        ):
            return "a container has no name or no image"
        if not _are_texts(container.get("args") or []):
            return "args of a container is not a list of texts"
    return ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _our_containers(objects: Iterable[Object]) -> list[Object]:
    return [
        container
        for obj in objects
        if obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
        if container["image"].startswith(OURS)
    ]


def from_registry(objects: Iterable[Object], registry: str | None, mirror: str | None = None) -> list[Object]:
    """Return the objects with our images from the registry, and with default images from the mirror, if given.

    The mirror also has our images. Raises Failure if no image is ours.
    """
    result = list(objects)
    if not (prefix := mirror or registry):
        return result
    containers = _our_containers(result)
    if not containers:
        raise Failure(
            f"{'--mirror' if mirror else '--registry'} changes nothing: the manifest has no image '{OURS}…'; "
            "leave it out, or restore the images in the manifest",
            Exit.USAGE,
        )
    for container in containers:
        container["image"] = in_registry(container["image"], prefix)
        if mirror and container["name"] in MIRRORED:
            container["args"] = [*(container.get("args") or ()), f"--mirror={mirror}"]
    return result


def images() -> dict[str, str]:
    """Return every image that a cluster can pull for our defaults, and what each is for."""
    lines = (_root() / "manifests" / "images.txt").read_text(encoding="utf-8").splitlines()
    entries = [line.partition(" ") for line in lines if not line.startswith("#")]
    return {image: purpose for image, _, purpose in entries}


def _documents(path: Path) -> list[Object]:
    return documents_in(path.read_text(encoding="utf-8"), path.name)


def _root() -> Path:
    """Return the folder of the files: in the wheel, else in the checkout that this is installed from."""
    packaged = HERE / "files"
    return packaged if packaged.is_dir() else HERE.parents[3]
