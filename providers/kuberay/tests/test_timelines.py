"""Recorded runs of the real operator: the phase that each line is to us, stated by hand."""

from __future__ import annotations

import pytest

from kubefoundry_kuberay.observe import observe
from kubefoundry_sdk.testing.generated import deployment
from support.timelines import states
from support.upstream import requires_shared

FAILED_UPDATE = "Running, update failed"
UPDATING = "Running, updating"

EXPECTED = {
    "kuberay-main-create": {
        1: "Pending",
        2: "Pending",  # the operator's finalizer
        3: "Deploying",
        24: "Deploying",  # application under pending
        28: "Deploying",  # application RUNNING under active, Ready one write later
        29: "Running",
    },
    "kuberay-1.6.2-edit": {
        2: "Pending",
        4: "Pending",
        5: "Deploying",
        24: "Deploying",
        29: "Deploying",
        30: "Running",
        32: "Running",  # serveConfigV2 edited
        33: "Running",
        35: "Deploying",  # application DEPLOYING: its only engine is replaced
        36: "Running",
        37: "Running",  # worker replicas only
        39: "Running",
        40: "Running",  # toleration only
        41: "Running",
        44: "Running",  # worker image: second cluster
        45: UPDATING,  # no application statuses under active
        70: UPDATING,
        75: "Running",  # switched
        76: "Running",
        91: "Running",  # being deleted; the recording keeps no deletionTimestamp
        92: "Running",
    },
    "kuberay-1.6.2-fail": {
        2: "Pending",
        4: "Pending",
        5: "Deploying",
        25: "Deploying",
        26: "Failed",  # DEPLOY_FAILED at first deploy
        27: "Failed",  # fixed, not yet taken up
        29: "Deploying",
        33: "Deploying",
        35: "Running",
        36: "Running",
        37: "Running",
        39: "Deploying",
        40: "Running",
        41: "Failed",  # UNHEALTHY, Ready stays True; there is no second engine
        42: "Failed",
        43: "Failed",
        45: "Deploying",
        46: "Failed",  # DEPLOY_FAILED
    },
    "kuberay-1.6.2-validate": {
        2: "Pending",
        3: "Pending",
        6: "Failed",  # ValidationFailed without observedGeneration
        7: "Failed",
        8: "Failed",  # fixed, not yet taken up
        9: "Deploying",  # ValidationFailed outlives the fix
        30: "Deploying",
        35: "Deploying",
        36: "Running",
        37: "Running",  # edited to an invalid spec
        39: FAILED_UPDATE,  # ValidationFailed, the old spec serves
        41: FAILED_UPDATE,
        42: FAILED_UPDATE,  # fixed, not yet taken up
        44: "Running",
        45: "Pending",  # a name of 51 characters
        46: "Pending",
        48: "Failed",
        50: "Failed",
    },
}

ASKED = deployment({"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}})


@pytest.mark.upstream
@requires_shared
@pytest.mark.parametrize("recording", EXPECTED)
def test_replay(recording: str) -> None:
    observations = {}
    for state in states(recording, "rayservices"):
        live = {"metadata": {"generation": state.generation}, "status": dict(state.status)}
        seen = observe(ASKED, live)
        observations[state.line] = (
            FAILED_UPDATE if seen.update_failed else UPDATING if seen.updating else seen.phase
        )
        assert seen.message
        assert seen.reason != "Unknown"

    assert observations == EXPECTED[recording]
