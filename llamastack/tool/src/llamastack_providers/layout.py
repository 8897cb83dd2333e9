"""Defines paths inside the containers of a pod.

Source: sources §5.2 "User-Facing Paths" and "Shared Volume Specification".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROVIDER: Final = "/lls-provider"
EXTERNAL_PROVIDERS: Final = "/opt/llama-stack/external-providers"
BASE_CONFIG: Final = "/opt/llama-stack/base-config"
CONFIG: Final = "/opt/llama-stack/config"
EFFECTIVE_CONFIG: Final = "/opt/llama-stack/effective-config"
"""A small writable volume of the main container, with the configuration that the server starts from (sources
§5.2)."""
TERMINATION_LOG: Final = "/dev/termination-log"
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""Mounted by Kubernetes unless the pod or its ServiceAccount refuses it."""

SERVICES: Final = "/run/lls-provider"
"""The server's container has a folder here for each provider's service, with its socket."""
TOKENS: Final = "/run/lls-provider-tokens"
"""The server's container has a folder here for each provider's service, with its token.

The service has the same folder. It is not the socket's folder, where the service could replace the token by a link.
"""

SPEC_FILE: Final = "lls-provider-spec.yaml"
CRD_FILE: Final = "crd-config.yaml"
RECORD_FILE: Final = "installed.json"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below a root.

    Attributes:
        root: `/` in a container, another directory to try the tool outside of one.
    """

    root: Path = Path("/")

    def at(self, path: str) -> Path:
        """Return the location of an absolute path of the container."""
        return self.root / path.lstrip("/")

    @property
    def provider(self) -> Path:
        """Return the directory of the provider in its image."""
        return self.at(PROVIDER)

    @property
    def shared(self) -> Path:
        """Return the volume that all install containers write to."""
        return self.at(EXTERNAL_PROVIDERS)

    @property
    def packages(self) -> Path:
        """Return the tree with the packages of all providers."""
        return self.shared / "python-packages"

    @property
    def metadata(self) -> Path:
        """Return the directory with a record and the configuration of each provider."""
        return self.shared / "metadata"

    @property
    def manifest(self) -> Path:
        """Return the readable list of all installed packages."""
        return self.shared / "installed-packages.txt"

    @property
    def staging(self) -> Path:
        """Return the prefix of the staging directories.

        They are on their target's volume, so a move is one rename.
        """
        return self.shared / ".staging-"

    @property
    def base_config(self) -> Path:
        """Return the configuration of the distribution or the user, which `merge-config` reads."""
        return self.at(BASE_CONFIG) / "run.yaml"

    @property
    def config(self) -> Path:
        """Return the directory of the configuration."""
        return self.at(CONFIG)

    @property
    def effective(self) -> Path:
        """Return the configuration that the server runs with."""
        return self.at(EFFECTIVE_CONFIG) / "run.yaml"

    @property
    def started(self) -> Path:
        """Return the mark of an earlier start of a server in this pod. If it exists, that server has ended."""
        return self.at(EFFECTIVE_CONFIG) / "started"
