"""The removal of a pod's files from its node."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from kubefoundry_nodes.kubelet.pod import cleared


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_pod_folder_is_removed_when_cancelled_repeatedly(tmp_path: Path, times: int) -> None:
    folder = tmp_path / "pod"
    (folder / "volumes").mkdir(parents=True)
    busy = Event()
    with ThreadPoolExecutor(1) as only:
        # The only thread is busy.
        only.submit(busy.wait)
        asyncio.get_running_loop().set_default_executor(only)
        clearing = asyncio.create_task(cleared(folder))
        for _ in range(times):
            await asyncio.sleep(0)
            clearing.cancel()
        await asyncio.sleep(0)
        busy.set()
        await clearing

    assert not folder.exists()
