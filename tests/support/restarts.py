"""A component of the suite that is down, or has other settings, for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kubefoundry_demo.suite import Component


@contextmanager
def stopped(component: Component) -> Iterator[None]:
    """Down inside the block, and up again after it."""
    component.stop()
    try:
        yield
    finally:
        component.start()
        component.wait_ready()


@contextmanager
def restarted(component: Component, environment: Mapping[str, str]) -> Iterator[None]:
    """Restarts it with these variables added, and afterwards as it was."""
    before = component.environment
    _restart(component, {**before, **environment})
    try:
        yield
    finally:
        _restart(component, before)


def _restart(component: Component, environment: Mapping[str, str]) -> None:
    if component.running:
        component.stop()
    component.environment = dict(environment)
    component.start()
    component.wait_ready()
