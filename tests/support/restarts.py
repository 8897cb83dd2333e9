"""Stop, uninstall or reconfigure a component of the suite for a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kubefoundry_local.suite import Component, Suite


@contextmanager
def stopped(component: Component) -> Iterator[None]:
    """Stop the component during the block."""
    component.stop()
    try:
        yield
    finally:
        component.start()
        component.wait_ready()


@contextmanager
def frozen(component: Component) -> Iterator[None]:
    """Suspend the process of the component during the block. Its Lease lasts 15 s."""
    assert component.process is not None
    component.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        component.process.send_signal(signal.SIGCONT)


@contextmanager
def uninstalled(suite: Suite, provider: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Remove process, permissions and registration of a provider during the block.

    Afterwards it is installed with these variables.
    """
    suite.uninstall(provider)
    suite.plane.kubectl("delete", "inferenceproviderconfig", provider)
    try:
        yield
    finally:
        suite.install(provider, environment=environment)
        suite.start(provider)


@contextmanager
def restarted(component: Component, environment: Mapping[str, str]) -> Iterator[None]:
    """Restart the component with additional variables during the block."""
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
