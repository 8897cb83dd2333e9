"""Each check of a provider's process finds its fault in the example's provider."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_conformance import cases
from kubefoundry_conformance.check import run
from kubefoundry_conformance.cluster.checks import PROVIDER
from kubefoundry_conformance.cluster.local import local
from kubefoundry_conformance.cluster.rig import Rig
from support.kit_planes import kept_planes
from support.widgets import EXAMPLES, WIDGETS

pytestmark = [pytest.mark.integration, pytest.mark.first, pytest.mark.sampled(3)]

PROGRAM: Final = Path(__file__).resolve().parents[2] / "support" / "wrong_provider.py"
EARLY: Final = ("REG-4", "REG-3")
"""Before the CRD is installed."""

LATER: Final = (
    *("REG-2", "REG-5", "REG-1", "PRO-1 served", "PRO-1 counted", "PRO-2"),
    *("WRI-1", "WRI-2", "WRI-3", "WRI-4", "WRI-5", "WRI-6", "WRI-7", "WRI-7 begun", "WRI-8", "WRI-9"),
    *("SUP-1", "REN-7", "REG-6"),
    *("OBS-6", "OBS-10", "STA-1", "STA-2", "STA-3", "STA-4", "STA-5"),
    *("LEV-1", "LEV-2", "LEV-3", "LEV-4", "LEV-5", "PRO-5"),
    # Of the audit log, which keeps what it has seen.
    *("PRO-4", "PRO-3"),
)
POLICIES: Final = {"WRI-4", "WRI-5", "WRI-9"}
"""Checks that create a ValidatingAdmissionPolicy."""

BY_POLICY: Final = pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")
CONTROL: Final = {"WRI-1", "STA-1"}
"""Checks that pass on all others: the subject works but for its fault."""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One control plane for all subjects, one after another."""
    folder = EXAMPLES / "provider"
    manifest = cases.documents_of(folder / "manifest.yaml")
    [role] = [
        one
        for one in manifest
        if one["metadata"]["name"] == "kubefoundry-provider-widgets" and one["kind"] == "ClusterRole"
    ]
    # The subject with the fault PRO-4 watches an operator of another name.
    operator = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["renamed-operator"]}
    role["rules"].append({**operator, "verbs": ["list", "watch"]})
    with (
        kept_planes(),
        local(
            manifest,
            cases.crd_in(folder / "widgets.crd.yaml", WIDGETS.crd),
            WIDGETS,
            cases.read(folder / "cases.yaml"),
            [sys.executable, str(PROGRAM)],
            tmp_path_factory.mktemp("wrong"),
        ) as made,
    ):
        yield made


def failed(rig: Rig, fault: str, rules: set[str]) -> set[str]:
    """Rules of which a check fails on the subject with that fault."""
    rig.subject.environment["KUBEFOUNDRY_FAULT"] = fault
    rig.subject.start()
    rig.subject.wait_ready()
    try:
        results = [run(check, rig, "control plane") for check in PROVIDER if check.rule in rules]
    finally:
        rig.subject.stop()
    assert {result.rule for result in results} == rules
    return {result.rule for result in results if result.outcome == "failed"}


def forget_the_one_before(rig: Rig) -> None:
    """Deletes what that subject has reported: neither its registration nor its heartbeat is the next one's."""
    assert rig.suite is not None
    rig.suite.plane.kubectl("delete", "inferenceproviderconfig", rig.provider, "--ignore-not-found")


@pytest.mark.parametrize("rule", EARLY)
def test_fault_of_the_registration_is_seen(rig: Rig, rule: str) -> None:
    forget_the_one_before(rig)

    assert failed(rig, rule, {rule}) == {rule}


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=BY_POLICY) if fault in POLICIES else fault for fault in LATER]
)
def test_fault_is_seen_by_its_check(rig: Rig, fault: str) -> None:
    rule = fault.partition(" ")[0]
    if not rig.cluster_objects:
        rig.runner.run(rig.install_crd())
    if rule == "REG-2":
        forget_the_one_before(rig)

    assert failed(rig, fault, {rule, *CONTROL}) == {rule}


def test_every_rule_of_a_process_has_a_wrong_subject() -> None:
    assert {check.rule for check in PROVIDER} == {*EARLY, *(fault.partition(" ")[0] for fault in LATER)}
