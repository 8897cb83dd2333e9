"""A connection that is given up leaves no key of the client behind."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from pathlib import Path

import pytest

from kubefoundry_simulators.cluster import connect


def kubeconfig(folder: Path) -> Path:
    """One with a client's certificate and key within it."""
    key, certificate = folder / "key", folder / "crt"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*made, "-subj", "/CN=test", "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    user = {
        "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(key.read_bytes()).decode(),
    }
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


def until_there(folder: Path) -> None:
    """Until something is in the folder."""
    while not any(folder.iterdir()):
        pass


@pytest.mark.slow
def test_one_that_is_cancelled_while_it_reads_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, files = kubeconfig(tmp_path), tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(files))

    async def given_up() -> None:
        connecting = asyncio.ensure_future(connect(path))
        await asyncio.to_thread(until_there, files)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    for _ in range(20):
        asyncio.run(given_up())

    assert list(files.iterdir()) == []
