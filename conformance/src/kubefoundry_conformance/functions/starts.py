"""REN-3 across restarts: renders in new processes, as a provider's next starts do, with sets in another order.

The processes are compared with each other, not with this one, so that every run has the same result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kubefoundry_conformance.cases import Cases, Unusable
from kubefoundry_conformance.check import Broken, Finding, Skipped, search
from kubefoundry_conformance.functions.subject import Functions, Spec, Start, deployment, loaded
from kubefoundry_conformance.functions.supporting import generated
from kubefoundry_sdk.provider.contract import Rendered
from kubefoundry_sdk.testing.fields import ARG_NAMES

SEEDS: Final = ("0", "1", "2", "3", "4", "5")
"""Of Python's hashes of strings, which decide the order of a set. The chance that two
words are in the same order in all six is 3 %."""

LOADED: Final = 60.0
SLOWER: Final = 10.0
"""A process may take LOADED seconds, and in addition SLOWER times what rendering takes here."""

CHILD: Final = """\
import json, sys
asked = json.load(open(sys.argv[1], encoding="utf-8"))
sys.path[:] = asked["path"]
from kubefoundry_conformance.functions.starts import answer
answer(asked, sys.argv[2])
"""
"""The path is not in PYTHONPATH, which programs that a provider starts would read, too."""


def _four(*words: str) -> dict[str, str]:
    return {f"example.com/{word}": word for word in words}


MANY: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "env": [
            {"name": name, "value": name} for name in ("PROBE_ONE", "PROBE_TWO", "PROBE_THREE", "PROBE_FOUR")
        ]
    },
    {"nodeSelector": _four("zone", "pool", "disk", "arch")},
    {"tolerations": [{"key": key, "operator": "Exists"} for key in _four("team", "spot", "gpu", "batch")]},
    {"podTemplate": {"metadata": {"labels": _four("team", "cost", "stage", "owner")}}},
    {"podTemplate": {"metadata": {"annotations": _four("team", "cost", "stage", "owner")}}},
)
"""Fields with so many entries that a set of them has an order."""


def same_after_a_start(subject: Functions) -> Iterator[Finding]:
    if subject.start is None:
        raise Skipped("no other process can find a provider that is not named as MODULE:FUNCTION")
    specs = [spec for base in subject.bases() for spec in (base, *_with_many(base))]
    specs = [spec for spec in specs if subject.takes(deployment(spec))]

    def generate(spec: Spec) -> Iterator[Finding]:
        if subject.takes(deployment(spec)):
            specs.append(spec)
        return iter(())

    yield from search(generated(subject), generate, subject.examples // 3)
    yield from _differences(subject, subject.start, specs)


def _with_many(base: Spec) -> Iterator[Spec]:
    engine = base["engine"]
    yield from ({**base, **many} for many in MANY)
    args = {**dict.fromkeys(ARG_NAMES[engine["type"]], "1"), **(engine.get("args") or {})}
    yield {**base, "engine": {**engine, "args": args}}


def _differences(subject: Functions, start: Start, specs: Sequence[Spec]) -> Iterator[Finding]:
    """What is rendered otherwise after a start. Raises Broken; Unusable where no process can be started."""
    began = time.monotonic()
    try:
        for spec in specs:
            _written(subject.render(deployment(spec)))
    except TypeError as error:
        raise Broken("REN-1", Finding(f"render returns what is not JSON: {error}", "JSON")) from error
    within = LOADED + SLOWER * (time.monotonic() - began)
    with tempfile.TemporaryDirectory(prefix="kubefoundry-conformance-") as folder:
        asked = Path(folder) / "asked"
        body = {"where": start.where, "path": start.path, "crd": subject.crd, "specs": specs}
        asked.write_text(json.dumps(body, default=str), encoding="utf-8")
        first: list[str] = []
        for seed in SEEDS:
            answered = _process(start, seed, asked, Path(folder) / f"answer-{seed}", within)
            if isinstance(answered, Finding):
                yield answered
                return
            first = first or answered
            for spec, before, after in zip(specs, first, answered, strict=True):
                if before != after:
                    yield Finding(
                        f"{_difference(before, after)} after another start, rendered of {spec}",
                        "the same objects after a restart, which otherwise rewrites every model: use no order of a "
                        "set, no time, nothing random",
                    )
                    return


def _process(start: Start, seed: str, asked: Path, answer: Path, within: float) -> list[str] | Finding:
    """What one process renders. Its group ends with it: a provider may start others. Raises Unusable."""
    said = answer.with_suffix(".log")
    with said.open("wb") as output:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", CHILD, str(asked), str(answer)],
                # a pod has another name after each start
                env={**start.environment, "PYTHONHASHSEED": seed, "HOSTNAME": f"start-{seed}"},
                cwd=start.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise Unusable(f"REN-3 needs a new process, which cannot be started: {error}") from error
    try:
        code = process.wait(within)
    except subprocess.TimeoutExpired:
        return Finding(f"a new process has not rendered all specs within {within:.0f} s", "less time")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        answered = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = said.read_text(errors="replace").strip().splitlines()[-1:]
        return Finding(
            f"a new process ends with exit code {code}: {''.join(last) or 'no output'}", "a render"
        )
    if isinstance(answered, str):
        return Finding(f"a new process cannot render: {answered}", "a render")
    rendered: list[str] = answered
    return rendered


def answer(asked: dict[str, Any], file: str) -> None:
    """In the new process: writes what is rendered, or an error, to the file. Ends the process."""
    try:
        subject = Functions(loaded(asked["where"]), asked["crd"], Cases(specs={"none": {}}))
        said: Any = [_written(subject.render(deployment(spec))) for spec in asked["specs"]]
    except Broken as broken:
        said = broken.finding.seen
    except Unusable as error:
        said = str(error)
    Path(file).write_text(json.dumps(said), encoding="utf-8")
    # whatever threads the provider has started
    os._exit(0)


def _written(rendered: Rendered) -> str:
    """JSON, maps and helpers in the order of their names. Raises TypeError for what is not JSON."""
    helpers = sorted(json.dumps(helper, sort_keys=True) for helper in rendered.helpers)
    return json.dumps([rendered.main, helpers, rendered.image], sort_keys=True)


def _difference(before: str, after: str) -> str:
    at = next(at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    return " is ".join(f"…{text[max(0, at - 40) : at + 40]}…" for text in (before, after))
