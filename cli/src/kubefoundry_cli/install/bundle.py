"""The manifests that come with the command line: nothing is fetched to install with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_sdk.api import selectable_fields
from kubefoundry_sdk.api.kinds import Object

HERE: Final = Path(__file__).parent
IMAGES: Final = "kubefoundry/"
"""What our images are called in the manifests; a registry takes its place."""


def crds(*, selectable: bool = False) -> list[Object]:
    """Ours, without those of LlamaStack; with selectable fields where asked for."""
    found = [
        one for path in sorted((_root() / "crds").glob("*.yaml")) for one in _documents(path) if "spec" in one
    ]
    return [selectable_fields.added(one) for one in found] if selectable else found


def controller() -> list[Object]:
    """Namespace, roles of users, core and selector."""
    folder = _root() / "manifests"
    return [
        one
        for name in ("namespace", "users", "core", "selector")
        for one in _documents(folder / f"{name}.yaml")
    ]


def providers() -> list[str]:
    """Names of the providers whose manifest is here."""
    return sorted(path.stem for path in (_root() / "manifests" / "providers").glob("*.yaml"))


def provider(name: str) -> list[Object]:
    """Raises Failure for a name that is not one of `providers`."""
    if name not in providers():
        raise Failure(
            f"provider '{name}' does not come with this command line; it has {', '.join(providers())}. "
            "Name a manifest's file or https URL for another one",
            Exit.USAGE,
        )
    return list(_documents(_root() / "manifests" / "providers" / f"{name}.yaml"))


def parsed(text: str, origin: str) -> list[Object]:
    """The objects of a manifest. Raises Failure where it is none."""
    try:
        found = [one for one in yaml.safe_load_all(text) if one]
    except (yaml.YAMLError, RecursionError) as error:
        raise Failure(f"{origin} is not YAML: {' '.join(str(error).split())[:300]}", Exit.USAGE) from error
    for one in found:
        named = (
            isinstance(one, dict) and isinstance(one.get("metadata"), dict) and one["metadata"].get("name")
        )
        if not named or not isinstance(one.get("apiVersion"), str) or not isinstance(one.get("kind"), str):
            raise Failure(f"{origin} holds something that is not a Kubernetes object with a name", Exit.USAGE)
    if not found:
        raise Failure(f"{origin} holds no object", Exit.USAGE)
    return found


def from_registry(objects: Iterable[Object], registry: str | None) -> list[Object]:
    """The objects with the images of our manifests taken from that registry instead."""
    made = []
    for obj in objects:
        if registry and obj["kind"] == "Deployment":
            pod = obj["spec"]["template"]["spec"]
            for container in pod["containers"]:
                if container["image"].startswith(IMAGES):
                    container["image"] = f"{registry.rstrip('/')}/{container['image'].removeprefix(IMAGES)}"
        made.append(obj)
    return made


def _documents(path: Path) -> Iterator[Object]:
    for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if one:
            yield one


def _root() -> Path:
    """Where the wheel has them, else the checkout that this is installed from."""
    packaged = HERE / "files"
    return packaged if packaged.is_dir() else HERE.parents[3]
