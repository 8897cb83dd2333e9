"""Credentials that a kubeconfig contains: certificates, and a token that needs no plugin.

The `kubernetes` package reads all others. Its import takes more CPU time than the rest of a short command.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubefoundry_sdk._cluster.kubeconfig import Kubeconfig


@dataclass(frozen=True, slots=True)
class Fixed:
    """Fixed credentials, with the field names of `kubernetes.client.Configuration`."""

    ssl_ca_cert: str | None
    cert_file: str | None
    key_file: str | None
    token: str | None

    def get_api_key_with_prefix(self, _: str, __: str | None = None) -> str | None:
        """Return the value of the header `Authorization`, None without a token."""
        return f"Bearer {self.token}" if self.token else None


def are_fixed(chosen: Kubeconfig) -> bool:
    """Check whether neither a plugin nor a refresh is needed for the context's credentials."""
    return not chosen.user.keys() & {"exec", "auth-provider"}


def read(chosen: Kubeconfig, folder: str) -> Fixed:
    """Return the context's credentials.

    Args:
        chosen: The context.
        folder: The folder for contents that OpenSSL reads only from files.

    Raises:
        OSError: A file is missing.
        ValueError: The content of a field is not base64.
    """
    return Fixed(
        _file(chosen.cluster, "certificate-authority", chosen.cluster_folder, folder),
        _file(chosen.user, "client-certificate", chosen.folder, folder),
        _file(chosen.user, "client-key", chosen.folder, folder),
        chosen.user.get("token"),
    )


def _file(entry: Mapping[str, Any], field: str, base: Path, folder: str) -> str | None:
    """Return the file that the entry names or whose content it has; None if it has neither."""
    if content := entry.get(f"{field}-data"):
        path = Path(folder) / field
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(base64.standard_b64decode(content))
        return str(path)
    if not entry.get(field):
        return None
    path = base / entry[field]
    if not path.is_file():
        raise FileNotFoundError(f"File does not exist: {path}")
    return str(path)
