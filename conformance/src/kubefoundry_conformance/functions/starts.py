"""Renders in new processes, as the next starts of a provider do: later, and with sets in another order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.check import Broken, Finding
from kubefoundry_conformance.functions.subject import Functions, Spec, deployment, loaded
from kubefoundry_sdk.provider.contract import Rendered

SEEDS: Final = ("0", "1", "2", "3")
"""Of Python's hashes of strings, which decide the order of a set. Two words are in the same order in half of them."""

SECONDS: Final = 120
"""Within which a process renders; most of that is loading."""


def differences(subject: Functions, specs: Sequence[Spec]) -> Iterator[Finding]:
    """What is rendered otherwise after a start. `where` of the subject has to be known. Raises Broken."""
    try:
        here = [_written(subject.render(deployment(spec))) for spec in specs]
    except TypeError as error:
        raise Broken("REN-1", Finding(f"render returns what is not JSON: {error}", "JSON")) from error
    asked = json.dumps({"where": subject.where, "crd": subject.crd, "specs": specs})
    # The provider's module is found here, which is not always where Python looks first.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for seed in SEEDS:
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", __name__],
                input=asked,
                env={**environment, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            yield Finding(
                f"a new process has not rendered {len(specs)} specs within {SECONDS} s", "less time"
            )
            return
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            yield Finding(f"a new process that renders ends with exit code {done.returncode}: {last}", "0")
            return
        for spec, before, after in zip(specs, here, json.loads(done.stdout), strict=True):
            if before != after:
                yield Finding(
                    f"a new process renders {spec} otherwise: {_difference(before, after)}",
                    "the same after a restart, which otherwise rewrites every model: no order of a set, no time, "
                    "nothing by chance",
                )


def _written(rendered: Rendered) -> str:
    """JSON, maps in the order of their keys. Raises TypeError for what is not JSON."""
    return json.dumps([rendered.main, *rendered.helpers, rendered.image], sort_keys=True)


def _difference(before: str, after: str) -> str:
    at = next(at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    return " is ".join(f"…{text[max(0, at - 40) : at + 40]}…" for text in (before, after))


def main() -> None:
    """Reads what is asked from stdin, and writes what is rendered to stdout, where nothing else is then."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked: dict[str, Any] = json.load(sys.stdin)
    subject = Functions(loaded(asked["where"]), asked["crd"], Cases(specs={"none": {}}))
    with answer:
        json.dump([_written(subject.render(deployment(spec))) for spec in asked["specs"]], answer)


if __name__ == "__main__":
    main()
