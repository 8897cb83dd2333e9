"""What a process holds, and how much memory its manifest gives it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import COMPONENTS


def limit(component: str) -> int:
    """Bytes that the manifest gives the component."""
    documents = yaml.safe_load_all((ROOT / "manifests" / COMPONENTS[component]).read_text())
    [pod] = [it["spec"]["template"]["spec"] for it in documents if it["kind"] == "Deployment"]
    found = re.fullmatch(r"(\d+)Mi", pod["containers"][0]["resources"]["limits"]["memory"])
    assert found
    return int(found[1]) * 1024 * 1024


def most_held(pid: int) -> int:
    """Bytes that the process has held at most."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


def open_files(pid: int) -> int:
    """Its open files, connections among them."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
