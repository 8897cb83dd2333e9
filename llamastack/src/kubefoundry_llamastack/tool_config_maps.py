"""Keeps the tool in immutable ConfigMaps: one for each version that a Deployment of the CR still mounts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack.render.request import Distribution, child
from kubefoundry_llamastack.render.tool import FILE
from kubefoundry_llamastack.workload import tool_of
from kubefoundry_sdk._api.kinds import Object
from llamastack_providers import zipapp

NAME: Final = re.compile(r"^(?P<cr>.+)-provider-tool-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True)
class Tool:
    """The zipapp of this operator."""

    content: bytes

    @property
    def hash(self) -> str:
        """Return the first 12 hexadecimal digits of the content's SHA-256."""
        return hashlib.sha256(self.content).hexdigest()[:12]

    def name(self, cr_name: str) -> str:
        """Return the name of its ConfigMap for a CR."""
        return f"{cr_name}-provider-tool-{self.hash}"

    def config_map(self, cr: Distribution) -> Object:
        """Render the ConfigMap that the pods mount."""
        return child(
            "ConfigMap",
            "v1",
            self.name(cr.name),
            cr,
            immutable=True,
            binaryData={FILE: base64.b64encode(self.content).decode()},
        )


def current() -> Tool:
    """Return the tool that is built into this operator."""
    return Tool(zipapp.contents())


def cr_of(config_map: str) -> str | None:
    """Return the CR that a tool's ConfigMap belongs to, None for any other name."""
    match = NAME.match(config_map)
    return match["cr"] if match else None


def unused(existing: Iterable[str], templates: Iterable[Object]) -> list[str]:
    """Return the ConfigMaps that no template of the Deployment or its ReplicaSets mounts, sorted by name.

    A rollback needs the ConfigMaps of older ReplicaSets.
    """
    mounted = {tool_of(template) for template in templates}
    return sorted(name for name in existing if name not in mounted)
