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
from kubefoundry_sdk.api import quantity
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.errors import ApiError

log = logging.getLogger(__name__)

MODE: Final = 0o644
DATA: Final = "..data"
GENERATION: Final = "..2026_01_01_00_00_00.0000000001"
"""Where the files of one generation lie, under a name such as the kubelet gives them; nothing here makes another."""

Payload = dict[str, tuple[bytes, int]]
"""Content and mode by path below the volume."""


class NotThere(Exception):
    """What a volume waits for."""


@dataclass(frozen=True, slots=True)
class Volume:
    folder: Path
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Maker:
    """folder: of this pod's volumes. claims: of the node's. facts: what files may tell about the pod."""

    client: KubeletClient
    facts: Facts
    folder: Path
    claims: Path

    @property
    def group(self) -> int | None:
        found = (self.facts.pod["spec"].get("securityContext") or {}).get("fsGroup")
        return None if found is None else int(found)

    async def make(self) -> dict[str, Volume]:
        """All of the pod's, by name. Raises NotThere; may be called again then."""
        return {one["name"]: await self._volume(one) for one in self.facts.pod["spec"].get("volumes") or ()}

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
            account = self.facts.pod["spec"].get("serviceAccountName") or "default"
            seconds = source.get("expirationSeconds", 3600)
            try:
                token = await self.client.token(self.facts.pod, account, source.get("audience"), seconds)
            except ApiError as error:
                # without its account, or in a namespace that is being deleted
                if error.code not in (403, 404):
                    raise
                raise NotThere(f"token of {account}: {error.message}") from None
            return {source["path"]: (token.encode(), mode)}
        if source := part.get("downwardAPI"):
            return {
                item["path"]: (
                    self.facts.field(item["fieldRef"]["fieldPath"]).encode(),
                    item.get("mode") or mode,
                )
                for item in source.get("items") or ()
            }
        raise NotThere(f"not supported here: {', '.join(part)}")

    async def _content(self, kind: str, source: Mapping[str, Any], mode: int) -> Payload:
        name = source["name"]
        found = await self.client.content(kind, name, self.facts.pod["metadata"]["namespace"])
        if found is None:
            if source.get("optional"):
                return {}
            raise NotThere(f'{kind.lower()} "{name}" not found')
        data = files(kind, found)
        items = source.get("items")
        if not items:
            return {key: (value, mode) for key, value in data.items()}
        missing = [item["key"] for item in items if item["key"] not in data]
        if missing and not source.get("optional"):
            raise NotThere(f"{kind.lower()} references non-existent config key: {missing[0]}")
        return {
            item["path"]: (data[item["key"]], item.get("mode") or mode)
            for item in items
            if item["key"] in data
        }


def files(kind: str, found: Object) -> dict[str, bytes]:
    """The keys of a ConfigMap or Secret."""
    plain = {} if kind == "Secret" else found.get("data") or {}
    coded = (found.get("data") if kind == "Secret" else found.get("binaryData")) or {}
    return {
        **{key: value.encode() for key, value in plain.items()},
        **{key: base64.b64decode(value) for key, value in coded.items()},
    }


def write(place: Path, payload: Payload, group: int | None) -> None:
    """The files in a folder of their own, and links to them, as pkg/volume/util/atomic_writer.go does it."""
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
    for folder in (place, new, *(path for path in new.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    if group is not None:
        for path in (place, *place.rglob("*")):
            os.lchown(path, -1, group)
    # Last: it stands for all.
    (place / DATA).symlink_to(GENERATION)


def owned(place: Path, group: int | None) -> Path:
    """A folder that every user can write, and that belongs to the pod's group where it has one."""
    if group is None:
        place.chmod(0o777)
    else:
        os.chown(place, -1, group)
        place.chmod(0o2777)
    return place


async def made(maker: Maker, again: float) -> dict[str, Volume]:
    """The volumes, as soon as all they need is there; asked for again after so many seconds."""
    while True:
        try:
            return await maker.make()
        except NotThere as missing:
            log.info("%s: %s", maker.folder, missing)
            await asyncio.sleep(again)
