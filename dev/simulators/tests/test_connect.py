"""A cancelled connection leaves no client key on the disk."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest

from kubefoundry_simulators.certificate import self_signed
from kubefoundry_simulators.cluster import connect


def kubeconfig(folder: Path) -> Path:
    """Write a kubeconfig with an embedded client certificate and key."""
    certificate, key = (base64.b64encode(part).decode() for part in self_signed("127.0.0.1"))
    user = {"client-certificate-data": certificate, "client-key-data": key}
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "clusters": [{"name": "test", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "test", "user": user}],
            }
        )
    )
    return path


def until_filled(folder: Path) -> None:
    """Wait for the first file in the folder."""
    while not any(folder.iterdir()):
        pass


@pytest.mark.slow
def test_cancelled_connect_leaves_no_key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, files = kubeconfig(tmp_path), tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(files))

    async def connect_and_cancel() -> None:
        connecting = asyncio.ensure_future(connect(path))
        await asyncio.to_thread(until_filled, files)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    for _ in range(20):
        asyncio.run(connect_and_cancel())

    assert list(files.iterdir()) == []
