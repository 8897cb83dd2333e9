"""Support for tests of a provider; the extra `testing` installs what it imports.

from kubefoundry_sdk.testing import Harness, deployment, simulated, specs, violations

@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None))
def test_what_it_takes_fits_the_crd(spec): ...

@simulated
async def test_model_gets_ready():
    async with Harness(provider(), CRD) as harness: ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubefoundry_sdk.testing._harness import Event as Event
    from kubefoundry_sdk.testing._harness import Failure as Failure
    from kubefoundry_sdk.testing._harness import Harness as Harness
    from kubefoundry_sdk.testing._harness import Unsupported as Unsupported
    from kubefoundry_sdk.testing._harness import Write as Write
    from kubefoundry_sdk.testing._simulated import simulated as simulated
    from kubefoundry_sdk.testing.generated import Spec as Spec
    from kubefoundry_sdk.testing.generated import deployment as deployment
    from kubefoundry_sdk.testing.generated import specs as specs
    from kubefoundry_sdk.testing.structural import violations as violations

_MODULES = {
    **dict.fromkeys(("Event", "Failure", "Harness", "Unsupported", "Write"), "_harness"),
    "simulated": "_simulated",
    **dict.fromkeys(("Spec", "deployment", "specs"), "generated"),
    "violations": "structural",
}
"""Where each name is: a test that needs no generated specs does not import hypothesis."""

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"kubefoundry_sdk.testing.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
