"""A component of the suite that is down, not there at all, or has other settings, for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kubefoundry_local.suite import Component, Suite


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
def uninstalled(suite: Suite, provider: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Neither process nor permissions nor registration of the provider inside the block; after it, it is installed
    with these variables."""
    suite.uninstall(provider)
    suite.plane.kubectl("delete", "inferenceproviderconfig", provider)
    try:
        yield
    finally:
        suite.install(provider, environment=environment)
        suite.start(provider)


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
