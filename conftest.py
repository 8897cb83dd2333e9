"""What holds for the tests of every package."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["support.worker_groups"]

# The same examples in every run, and none is too slow: how long one takes says more of the machine than of the code.
# `pytest --hypothesis-profile=search` looks for others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("same")
