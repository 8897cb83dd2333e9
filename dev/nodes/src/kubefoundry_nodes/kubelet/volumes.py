"""The volumes of a pod as folders of this machine (kubelet 1.36: pkg/volume)."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubefoundry_nodes.kubelet import syscalls
from kubefoundry_nodes.kubelet.environment import Facts
from kubefoundry_nodes.kubelet.kubelet_client import CLAIMS, KubeletClient
from kubefoundry_sdk._api import quantity
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError

log = logging.getLogger(__name__)

MODE: Final = 0o644
DATA: Final = "..data"
GENERATION: Final = "..2026_01_01_00_00_00.0000000001"
"""Folder of the files, named as by the kubelet. Files are never updated, so there is only one generation."""

Payload = dict[str, tuple[bytes, int]]
"""Content and mode by path below the volume."""


class NotThere(Exception):
    """Raised if an object of a volume is missing."""


@dataclass(frozen=True, slots=True)
class Volume:
    folder: Path
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Maker:
    """Creates the volumes of a pod.

    Attributes:
        client: The client.
        facts: Values of the downward API.
        folder: The folder of the pod's volumes.
        claims: The folder of the node's claimed volumes.
    """

    client: KubeletClient
    facts: Facts
    folder: Path
    claims: Path

    @property
    def group(self) -> int | None:
        """The fsGroup of the pod."""
        group = (self.facts.pod["spec"].get("securityContext") or {}).get("fsGroup")
        return None if group is None else int(group)

    async def make(self) -> dict[str, Volume]:
        """Create all volumes, and return them by name. Raises NotThere; the caller may retry."""
        specs = self.facts.pod["spec"].get("volumes") or ()
        return {spec["name"]: await self._volume(spec) for spec in specs}

    async def _volume(self, volume: Mapping[str, Any]) -> Volume:
        place = self.folder / volume["name"]
        if (source := volume.get("emptyDir")) is not None:
            return Volume(self._empty(place, source))
        if source := volume.get("persistentVolumeClaim"):
            claimed = await self._claimed(source["claimName"])
            return Volume(claimed, bool(source.get("readOnly")))
        if source := volume.get("projected"):
            parts, mode = source.get("sources") or (), source.get("defaultMode", MODE)
        elif source := volume.get("configMap"):
            parts, mode = [{"configMap": source}], source.get("defaultMode", MODE)
        elif source := volume.get("secret"):
            renamed = {**source, "name": source["secretName"]}
            parts, mode = [{"secret": renamed}], source.get("defaultMode", MODE)
        elif source := volume.get("downwardAPI"):
            parts, mode = [{"downwardAPI": source}], source.get("defaultMode", MODE)
        else:
            raise NotThere(f"volume {volume['name']}: its kind is not supported here")
        payload: Payload = {}
        for part in parts:
            payload |= await self._payload(part, mode)
        write(place, payload, self.group)
        return Volume(place, read_only=True)

    def _empty(self, place: Path, source: Mapping[str, Any]) -> Path:
        if place.exists():
            return place
        place.mkdir(parents=True)
        limit = source.get("sizeLimit")
        if limit or source.get("medium") == "Memory":
            size = f",size={int(quantity.parse(limit))}" if limit else ""
            syscalls.mount("tmpfs", str(place), "tmpfs", options=f"mode=777{size}")
        return owned(place, self.group)

    async def _claimed(self, name: str) -> Path:
        claim = await self.client.find(CLAIMS, name, self.facts.pod["metadata"]["namespace"])
        if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
            raise NotThere(f'persistentvolumeclaim "{name}" is not there, or not bound')
        place = self.claims / claim["spec"]["volumeName"]
        place.mkdir(parents=True, exist_ok=True)
        return owned(place, self.group)

    async def _payload(self, part: Mapping[str, Any], mode: int) -> Payload:
        if source := part.get("configMap"):
            return await self._content("ConfigMap", source, mode)
        if source := part.get("secret"):
            return await self._content("Secret", source, mode)
        if source := part.get("serviceAccountToken"):
            return {source["path"]: (await self._token(source), mode)}
        if source := part.get("downwardAPI"):
            return {
                item["path"]: (
                    self.facts.field(item["fieldRef"]["fieldPath"]).encode(),
                    item.get("mode") or mode,
                )
                for item in source.get("items") or ()
            }
        raise NotThere(f"not supported here: {', '.join(part)}")

    async def _token(self, source: Mapping[str, Any]) -> bytes:
        account = self.facts.pod["spec"].get("serviceAccountName") or "default"
        seconds = source.get("expirationSeconds", 3600)
        try:
            token = await self.client.token(self.facts.pod, account, source.get("audience"), seconds)
        except ApiError as error:
            # The account is missing, or the namespace is being deleted.
            if error.code not in (403, 404):
                raise
            raise NotThere(f"token of {account}: {error.message}") from None
        return token.encode()

    async def _content(self, kind: str, source: Mapping[str, Any], mode: int) -> Payload:
        name = source["name"]
        obj = await self.client.content(kind, name, self.facts.pod["metadata"]["namespace"])
        if obj is None:
            if source.get("optional"):
                return {}
            raise NotThere(f'{kind.lower()} "{name}" not found')
        return _selected(kind, files(kind, obj), source, mode)


def _selected(kind: str, data: Mapping[str, bytes], source: Mapping[str, Any], mode: int) -> Payload:
    """Return the files that the volume source selects, or all if it selects none."""
    items = source.get("items")
    if not items:
        return {key: (value, mode) for key, value in data.items()}
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise NotThere(f"{kind.lower()} references non-existent config key: {missing[0]}")
    return {
        item["path"]: (data[item["key"]], item.get("mode") or mode) for item in items if item["key"] in data
    }


def files(kind: str, obj: Object) -> dict[str, bytes]:
    """Return the content of a ConfigMap or Secret by key."""
    plain = {} if kind == "Secret" else obj.get("data") or {}
    coded = (obj.get("data") if kind == "Secret" else obj.get("binaryData")) or {}
    return {
        **{key: value.encode() for key, value in plain.items()},
        **{key: base64.b64decode(value) for key, value in coded.items()},
    }


def write(place: Path, payload: Payload, group: int | None) -> None:
    """Write files to a separate folder, and create links to them, as pkg/volume/util/atomic_writer.go does."""
    if (place / DATA).is_symlink():
        return
    new = place / GENERATION
    for name, (content, mode) in payload.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode | (0o440 if group is not None else 0))
    new.mkdir(parents=True, exist_ok=True)
    for top in {name.split("/")[0] for name in payload}:
        (place / top).unlink(missing_ok=True)
        (place / top).symlink_to(f"{DATA}/{top}")
    _open_to(group, place, new)
    # This link comes last: it makes all files visible at once.
    (place / DATA).symlink_to(GENERATION)


def _open_to(group: int | None, place: Path, new: Path) -> None:
    """Let every user enter the folders, and give all files to the group."""
    for folder in (place, new, *(path for path in new.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    if group is not None:
        for path in (place, *place.rglob("*")):
            os.lchown(path, -1, group)


def owned(place: Path, group: int | None) -> Path:
    """Make a folder writable for the pod's group, or for every user if the pod has no group."""
    if group is None:
        place.chmod(0o777)
    else:
        os.chown(place, -1, group)
        place.chmod(0o2777)
    return place


async def wait_until_made(maker: Maker, again: float) -> dict[str, Volume]:
    """Retry every `again` seconds until all objects of the volumes exist, and return the volumes."""
    while True:
        try:
            return await maker.make()
        except NotThere as missing:
            log.info("%s: %s", maker.folder, missing)
            await asyncio.sleep(again)
