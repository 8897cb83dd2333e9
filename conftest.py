"""What holds for the tests of every package."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No example is too slow: how long one takes says more of the machine than of the code.
settings.register_profile(
    "untimed", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
