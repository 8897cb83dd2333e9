"""Valid subjects of the conformance kit. Tests derive faulty subjects from them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_conformance.cases import Cases, read
from kubefoundry_conformance.functions.subject import Functions
from kubefoundry_direct.provider import with_defaults as direct
from kubefoundry_widgets.provider import with_defaults as widgets

ROOT: Final = Path(__file__).resolve().parents[2]
FEW: Final = 12
"""Generated values of each check. A faulty subject fails often."""


def of_a_crd() -> Functions:
    """Return the example's provider. Its CRD also has a version that is not stored."""
    crd: dict[str, Any] = yaml.safe_load((ROOT / "examples/provider/widgets.crd.yaml").read_text())
    newest = crd["spec"]["versions"][0]
    crd["spec"]["versions"].append({**copy.deepcopy(newest), "name": "v1beta1", "storage": False})
    cases = read(ROOT / "examples/provider/cases.yaml")
    return Functions(widgets(), crd, cases, FEW)


def of_kubernetes() -> Functions:
    """Return provider direct, which has containers, selectors, pods and default images."""
    return Functions(direct(), None, read(ROOT / "providers/direct/cases.yaml"), FEW)


def cases_with(base: Cases, **changes: Any) -> Cases:
    """Return a copy of the cases with other fields."""
    return base.model_copy(update=changes)
