"""Support for tests of a provider; the extra `testing` installs what it imports.

from kubefoundry_sdk.testing import deployment, specs, violations

@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None))
def test_what_it_takes_fits_the_crd(spec): ...
"""

from __future__ import annotations

from kubefoundry_sdk.testing.generated import Spec as Spec
from kubefoundry_sdk.testing.generated import deployment as deployment
from kubefoundry_sdk.testing.generated import specs as specs
from kubefoundry_sdk.testing.structural import violations as violations
