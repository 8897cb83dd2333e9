"""Group and order the tests for several workers (`pytest -n`).

Tests that share a control plane share a worker, so that it is started once. A test with a control plane of its own
may run on any worker. The large groups come first, and the small files of unit tests fill the gaps at the end.

xdist's own groups change the ids of tests, which pytest 9.2 does not allow any more. So each worker writes a file
with the group of each test, because only workers collect tests, and the scheduler reads that file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

SHARED: Final = ("strict_suite", "suite", "stack", "cluster")
"""Fixtures with a control plane. `strict_suite` is first, because a module may define its `suite` by it."""

OWN: Final = ("fresh", "idle")
"""Fixtures that start a control plane for each test."""

FOLDER: Final = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
_WRITTEN: Final = "groups.json"
"""Name of the file, and key of its path in a worker's input."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the groups. The order within a group stays."""
    items.sort(key=_rank)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the groups, in a worker. The scheduler gets the tests afterwards."""
    if written := getattr(session.config, "workerinput", {}).get(_WRITTEN):
        unfinished = Path(f"{written}.{os.getpid()}")
        unfinished.write_text(json.dumps({item.nodeid: group(item) for item in session.items}))
        unfinished.rename(written)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Pass the file's path to a worker, in the process of the scheduler."""
    folder = node.config.stash.setdefault(FOLDER, tempfile.TemporaryDirectory(prefix="kubefoundry-groups-"))
    node.workerinput[_WRITTEN] = str(Path(folder.name) / _WRITTEN)


class ByGroup(LoadScopeScheduling):
    """A scheduler that assigns whole groups, in the order of the tests."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def schedule(self) -> None:
        """Read the groups, and schedule the tests."""
        written = Path(self.config.stash[FOLDER].name) / _WRITTEN
        self._groups: dict[str, str] = json.loads(written.read_text())
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    """Return the scheduler."""
    return ByGroup(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the shared fixture of a group after its last test, because a running suite takes 3 % of a core."""
    yield
    name = group(item)
    if name in SHARED and (nextitem is None or group(nextitem) != name):
        for definition in _fixtures(item)[name]:
            if definition.scope == "session":
                definition.finish(item._request)  # type: ignore[attr-defined]


def group(item: pytest.Item) -> str:
    """Return the group of a test: a fixture that it shares, its file, or its own id."""
    file = item.nodeid.split("::")[0]
    if not _needs_cluster(item):
        return file
    fixtures = _fixtures(item)
    if any(name in fixtures for name in OWN):
        return item.nodeid
    for name in SHARED:
        if name in fixtures and fixtures[name][-1].scope == "session":
            return name
    return item.nodeid if item.get_closest_marker("apart") else file


def _fixtures(item: pytest.Item) -> dict[str, tuple[pytest.FixtureDef[object], ...]]:
    return item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined,no-any-return]


def _needs_cluster(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("integration", "upstream"))


def _rank(item: pytest.Item) -> int:
    """Return the rank of a test. Long tests come first: suites, then tests that mostly wait and need few cores."""
    if item.get_closest_marker("first"):
        return -1
    if not _needs_cluster(item):
        return 3
    if group(item) in SHARED:
        return 0
    return 1 if item.get_closest_marker("apart") else 2
