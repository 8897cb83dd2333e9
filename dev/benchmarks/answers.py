"""`python -m benchmarks.answers`: check the predictions of the command line, without a cluster.

- The cheapest changes that `explain` names are applied, and the selection is repeated.
- Edits of each field are planned, and upstream changes that name no field are counted.
- `compat` predicts the effect of the next release of an upstream CRD on the example models. The releases are in the
  folder of KUBEFOUNDRY_UPSTREAM_CRDS, by default in ../shared.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from kubefoundry_cli import upgrade, upstream
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.install import bundle
from kubefoundry_cli.model import from_file, valid
from kubefoundry_cli.provenance import alternatives
from kubefoundry_cli.providers import RELEASES, crds_in, installed, probed
from kubefoundry_cli.selection import selected
from kubefoundry_cli.what_if import Verdict, edited, verdicts
from kubefoundry_local.control_plane import ROOT
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import default, validate
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_selector.candidate import provider as registered

EXAMPLES: Final = sorted((ROOT / "examples").glob("*.yaml"))
SHARED: Final = ROOT.parent / "shared" / "upstream-crds"


def main() -> int:
    """Print all tables, and return 1 if a prediction is wrong."""
    packages = {name: package for name, package in installed().items() if name in bundle.providers()}
    wrong = cheapest_changes(packages) + provenance(packages)
    compat(packages)
    return 1 if wrong else 0


def cheapest_changes(packages: dict[str, Provider]) -> int:
    """Apply the changes that `explain` names, print the results, and return the number of wrong ones."""
    candidates = [
        registered({**registration(package), "status": {"ready": True}}) for package in packages.values()
    ]
    wrong = count = 0
    print("| example | provider | answer | applied |\n|---|---|---|---|")
    for obj in examples():
        named = (obj["spec"].get("provider") or {}).get("name")
        chosen = named or selected(obj, candidates, packages).provider
        print(f"| {obj['metadata']['name']} | {chosen} | {'named' if named else 'selected'} | |")
        for verdict in verdicts(obj, candidates, packages, chosen=chosen):
            text = verdict.text.removeprefix(f"{verdict.provider}: ")
            is_true = _is_proven(obj, verdict, packages, candidates)
            count, wrong = count + (is_true is not None), wrong + (is_true is False)
            proof = {None: "nothing to apply", True: "true", False: "WRONG"}[is_true]
            print(f"| {obj['metadata']['name']} | {verdict.provider} | {text} | {proof} |")
    print(f"\n{count - wrong} of {count} changes proven by applying them\n")
    return wrong


def _is_proven(obj: Object, verdict: Verdict, packages: dict[str, Provider], candidates: Any) -> bool | None:
    """Apply the changes that a verdict names, and check that they have its effect; None if it names none."""
    if verdict.edits is None or not (verdict.edits or verdict.accepts):
        return None
    return _holds(obj, verdict.provider, verdict.edits, packages, candidates, by_rules=verdict.by_rules)


def _holds(
    obj: Object, name: str, edits: Any, packages: dict[str, Provider], candidates: Any, *, by_rules: bool
) -> bool:
    """Check whether the edited model goes to the provider: by the rules, or because the provider accepts it."""
    spec = edited(obj["spec"], edits)
    if validate(spec):
        return False
    after = {**obj, "spec": default(spec)}
    if by_rules and edits:
        return selected(after, candidates, packages).provider == name
    return not upstream.problems(packages[name], after, None)


def provenance(packages: dict[str, Provider]) -> int:
    """Plan an edit of each field, print the changes, and return the number of changes that name no field."""
    unnamed = 0
    print("| provider | edits | values changed | that name a field |\n|---|---|---|---|")
    for name, provider in packages.items():
        schema = _schema(provider)
        changed = explained = edits = 0
        for obj in examples():
            obj = {**obj, "spec": {**obj["spec"], "provider": {"name": name}}}
            try:
                model = upgrade.made(provider, obj, schema)
            except Failure:
                # The provider does not support this example.
                continue
            for spec in alternatives(obj["spec"]):
                if validate(spec):
                    continue
                after = {**obj, "metadata": {**obj["metadata"], "generation": 2}, "spec": default(spec)}
                try:
                    planned = upstream.planned(provider, after, schema, model.live, model.helpers)
                except Failure:
                    continue
                edits += 1
                changed += len(planned.changes)
                explained += sum(bool(change.fields) for change in planned.changes)
        unnamed += changed - explained
        print(f"| {name} | {edits} | {changed} | {explained} |")
    print()
    return unnamed


def compat(packages: dict[str, Provider]) -> None:
    """Print the predicted effect of each CRD release on models of the release before."""
    folder = Path(os.environ.get(RELEASES) or SHARED)
    if not folder.is_dir():
        print(f"compat is left out: {folder} does not exist; {RELEASES} names the folder of the CRDs")
        return
    print("| provider | from | to | models | what becomes of them | values lost |\n|---|---|---|---|---|---|")
    for name, provider in packages.items():
        files = (
            sorted((folder / name).glob("*.yaml"), key=_order) if provider.upstream.version is None else []
        )
        crds = [(file.stem, crds_in([str(file)])[provider.upstream.crd]) for file in files]
        for (old_name, old), (new_name, new) in pairwise(crds):
            cells = [name, old_name, new_name, *_effects(provider, old, new)]
            print(f"| {' | '.join(cells)} |")


def _effects(provider: Provider, old: Object, new: Object) -> tuple[str, str, str]:
    """Return the number of models, the predicted effects of the new CRD, and the number of lost values."""
    release = upgrade.release(provider, new)
    outcomes = [upgrade.outcome(provider, release, model) for model in _models(provider, old)]
    numbers = Counter(outcome.fate for outcome in outcomes)
    fates = ", ".join(f"{number} {fate}" for fate, number in numbers.items())
    lost = {path for outcome in outcomes for path in outcome.lost}
    return str(len(outcomes)), fates or "not supported before", str(len(lost))


def _models(provider: Provider, crd: Object) -> Iterator[upgrade.Model]:
    """Yield the examples as the provider would create them with this CRD, if it supports the CRD and the example."""
    try:
        schema = probed(provider, crd)
    except Failure:
        return
    for obj in examples():
        named = {**(obj["spec"].get("provider") or {}), "name": provider.name}
        try:
            yield upgrade.made(provider, {**obj, "spec": {**obj["spec"], "provider": named}}, schema)
        except Failure:
            continue


def examples() -> Iterator[Object]:
    """Yield the ModelDeployments of the examples."""
    for file in EXAMPLES:
        yield valid(from_file(str(file)))


def _schema(provider: Provider) -> Schema:
    if provider.upstream.schema is not None:
        return provider.upstream.schema
    crds = crds_in([str(ROOT / "dev/simulators/crds" / f"{provider.name}.yaml")])
    return probed(provider, crds[provider.upstream.crd])


def _order(file: Path) -> tuple[bool, list[int]]:
    """Sort by version. Files without a version, of development branches, come last."""
    return not file.stem.startswith("v"), [int(part) for part in re.findall(r"\d+", file.stem.split("-")[0])]


if __name__ == "__main__":
    sys.exit(main())
