"""`python -m benchmarks.answers`: whether the command line's answers are true, over examples, fields and releases.

Cheapest changes are applied and asked again. Edits of each field are planned, and changes upstream that name no field
are counted. Models that were written for one release of an upstream's CRD meet the next one: `compat` says what
happens. Needs no cluster. Releases are those in the folder of KUBEFOUNDRY_UPSTREAM_CRDS, by default ../shared.
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
from kubefoundry_cli.what_if import edited, verdicts
from kubefoundry_local.control_plane import ROOT
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.validation import default, validate
from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.registration import registration
from kubefoundry_sdk.provider.upstream_kind import Schema
from kubefoundry_selector.candidate import provider as registered

EXAMPLES: Final = sorted((ROOT / "examples").glob("*.yaml"))
SHARED: Final = ROOT.parent / "shared" / "upstream-crds"


def main() -> int:
    packages = {name: one for name, one in installed().items() if name in bundle.providers()}
    wrong = cheapest_changes(packages) + provenance(packages)
    compat(packages)
    return 1 if wrong else 0


def cheapest_changes(packages: dict[str, Provider]) -> int:
    """How many answers were found wrong by applying them."""
    known = [registered({**registration(one), "status": {"ready": True}}) for one in packages.values()]
    wrong = count = 0
    print("| example | provider | answer | applied |\n|---|---|---|---|")
    for obj in examples():
        named = (obj["spec"].get("provider") or {}).get("name")
        chosen = named or selected(obj, known, packages).provider
        print(f"| {obj['metadata']['name']} | {chosen} | {'named' if named else 'selected'} | |")
        for verdict in verdicts(obj, known, packages, chosen=chosen):
            said = verdict.text.removeprefix(f"{verdict.provider}: ")
            proof = "nothing to apply"
            if verdict.edits is not None and (verdict.edits or verdict.accepts):
                holds = _applied(
                    obj, verdict.provider, verdict.edits, packages, known, by_rules=verdict.by_rules
                )
                count, wrong = count + 1, wrong + (not holds)
                proof = "true" if holds else "WRONG"
            print(f"| {obj['metadata']['name']} | {verdict.provider} | {said} | {proof} |")
    print(f"\n{count - wrong} of {count} changes proven by applying them\n")
    return wrong


def _applied(
    obj: Object, name: str, edits: Any, packages: dict[str, Provider], known: Any, *, by_rules: bool
) -> bool:
    spec = edited(obj["spec"], edits)
    if validate(spec):
        return False
    other = {**obj, "spec": default(spec)}
    if by_rules and edits:
        return selected(other, known, packages).provider == name
    return not upstream.problems(packages[name], other, None)


def provenance(packages: dict[str, Provider]) -> int:
    """How many changed values name no field."""
    unnamed = 0
    print("| provider | edits | values changed | that name a field |\n|---|---|---|---|")
    for name, provider in packages.items():
        schema = _schema(provider)
        changed = said = edits = 0
        for obj in examples():
            obj = {**obj, "spec": {**obj["spec"], "provider": {"name": name}}}
            try:
                model = upgrade.made(provider, obj, schema)
            except Failure:
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
                said += sum(bool(one.fields) for one in planned.changes)
        unnamed += changed - said
        print(f"| {name} | {edits} | {changed} | {said} |")
    print()
    return unnamed


def compat(packages: dict[str, Provider]) -> None:
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
            models = list(_models(provider, old))
            found = [upgrade.outcome(provider, upgrade.release(provider, new), one) for one in models]
            fates = ", ".join(
                f"{number} {fate}" for fate, number in Counter(one.fate for one in found).items()
            )
            lost = len({path for one in found for path in one.lost})
            cells = [name, old_name, new_name, str(len(models)), fates or "not supported before", str(lost)]
            print(f"| {' | '.join(cells)} |")


def _models(provider: Provider, crd: Object) -> Iterator[upgrade.Model]:
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
    for file in EXAMPLES:
        yield valid(from_file(str(file)))


def _schema(provider: Provider) -> Schema:
    if provider.upstream.schema is not None:
        return provider.upstream.schema
    crds = crds_in([str(ROOT / "dev/simulators/crds" / f"{provider.name}.yaml")])
    return probed(provider, crds[provider.upstream.crd])


def _order(file: Path) -> tuple[bool, list[int]]:
    return not file.stem.startswith("v"), [int(part) for part in re.findall(r"\d+", file.stem.split("-")[0])]


if __name__ == "__main__":
    sys.exit(main())
