"""Memory and open files of a process, and the memory limit of its manifest."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import COMPONENTS


def limit(component: str) -> int:
    """Return the component's memory limit in bytes."""
    documents = yaml.safe_load_all((ROOT / "manifests" / COMPONENTS[component]).read_text())
    [pod] = [
        document["spec"]["template"]["spec"] for document in documents if document["kind"] == "Deployment"
    ]
    match = re.fullmatch(r"(\d+)Mi", pod["containers"][0]["resources"]["limits"]["memory"])
    assert match
    return int(match[1]) * 1024 * 1024


def most_held(pid: int) -> int:
    """Return the peak of the process's resident memory in bytes."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match
    return int(match[1]) * 1024


def open_files(pid: int) -> int:
    """Return the number of open files of the process, with connections."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
