"""What holds for the tests of every package."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

from kubefoundry_local.child_processes import launch_with
from support.preloaded import client

pytest_plugins = [
    "support.worker_groups",
    "support.kubernetes_version",
    "support.measured_tests",
    "support.sampled_cases",
]

# The same examples in every run, and none is too slow: how long one takes says more of the machine than of the code.
# `pytest --hypothesis-profile=search` looks for others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("same")

# Half a million objects are created while the tests are collected, and they all stay: a sixth of that time went into
# looking for garbage among them, and more of the tests' own time later.
gc.disable()


# Half of a start is the loading of libraries. tests/integration/install/test_starts.py starts programs without this.
launch_with(client.launch)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
