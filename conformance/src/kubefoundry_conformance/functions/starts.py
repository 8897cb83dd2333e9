"""REN-3 across restarts: render in new processes with other orders of sets, and compare the results.

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
from kubefoundry_conformance.functions.subject import (
    LOADERS,
    Functions,
    Spec,
    Start,
    build_deployment,
    end_programs,
)
from kubefoundry_conformance.functions.supporting import generated
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk.testing.fields import ARG_NAMES

SEEDS: Final = ("0", "1", "2", "3", "4", "5")
"""Values of PYTHONHASHSEED, which decides the order of a set. The chance that two
words are in the same order in all six is 3 %."""

LOADED: Final = 60.0
SLOWER: Final = 10.0
"""A process may take LOADED seconds, plus SLOWER times the duration of rendering in this process."""

CHILD: Final = """\
import json, sys
request = json.load(open(sys.argv[1], encoding="utf-8"))
sys.path[:] = request["path"]
from kubefoundry_conformance.functions.starts import respond
respond(request, sys.argv[2])
"""
"""The path is not passed in PYTHONPATH, because programs that the provider starts would read it, too."""


def _four_labels(*words: str) -> dict[str, str]:
    return {f"example.com/{word}": word for word in words}


MANY: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "env": [
            {"name": name, "value": name} for name in ("PROBE_ONE", "PROBE_TWO", "PROBE_THREE", "PROBE_FOUR")
        ]
    },
    {"nodeSelector": _four_labels("zone", "pool", "disk", "arch")},
    {
        "tolerations": [
            {"key": key, "operator": "Exists"} for key in _four_labels("team", "spot", "gpu", "batch")
        ]
    },
    {"podTemplate": {"metadata": {"labels": _four_labels("team", "cost", "stage", "owner")}}},
    {"podTemplate": {"metadata": {"annotations": _four_labels("team", "cost", "stage", "owner")}}},
)
"""Fields with so many entries that a set of them has an order."""


def check_restarts(subject: Functions) -> Iterator[Finding]:
    """Render the same specs in several new processes, and expect equal objects.

    Raises:
        Skipped: No other process can load the provider.
    """
    if subject.start is None:
        raise Skipped("no other process can find a provider that is not named as MODULE:FUNCTION")
    specs = [spec for base in subject.bases() for spec in (base, *_with_many(base))]
    specs = [spec for spec in specs if subject.takes(build_deployment(spec))]

    def collect(spec: Spec) -> Iterator[Finding]:
        if subject.takes(build_deployment(spec)):
            specs.append(spec)
        return iter(())

    yield from search(generated(subject), collect, subject.examples // 3)
    yield from _differences(subject, subject.start, specs)


def _with_many(base: Spec) -> Iterator[Spec]:
    engine = base["engine"]
    yield from ({**base, **many} for many in MANY)
    args = {**dict.fromkeys(ARG_NAMES[engine["type"]], "1"), **(engine.get("args") or {})}
    yield {**base, "engine": {**engine, "args": args}}


def _differences(subject: Functions, start: Start, specs: Sequence[Spec]) -> Iterator[Finding]:
    """Yield a difference between two starts.

    Raises:
        Broken: `render` returns a value that is not JSON.
        Unusable: No process can be started.
    """
    start_time = time.monotonic()
    try:
        for spec in specs:
            _as_json(subject.render(build_deployment(spec)))
    except TypeError as error:
        raise Broken("REN-1", Finding(f"render returns a value that is not JSON: {error}", "JSON")) from error
    timeout = LOADED + SLOWER * (time.monotonic() - start_time)
    with tempfile.TemporaryDirectory(prefix="kubefoundry-conformance-") as folder:
        request = Path(folder) / "request"
        body = {
            "where": start.where,
            "way": start.way,
            "path": start.path,
            "crd": subject.crd,
            "specs": specs,
        }
        request.write_text(json.dumps(body, default=str), encoding="utf-8")
        reference: list[str] = []
        for seed in SEEDS:
            outcome = _render_in_process(start, seed, request, Path(folder) / f"answer-{seed}", timeout)
            if isinstance(outcome, Finding):
                yield outcome
                return
            reference = reference or outcome
            for spec, before, after in zip(specs, reference, outcome, strict=True):
                if before != after:
                    yield Finding(
                        f"{_describe_difference(before, after)} after another start, rendered of {spec}",
                        "the same objects after a restart, which otherwise rewrites every model: use no order of a "
                        "set, no time, nothing random",
                    )
                    return


def _render_in_process(
    start: Start, seed: str, request: Path, response: Path, timeout: float
) -> list[str] | Finding:
    """Return the renders of one process.

    Raises:
        Unusable: The process cannot be started.
    """
    log = response.with_suffix(".log")
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", CHILD, str(request), str(response)],
                # A pod has another name after each start.
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
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        return Finding(f"a new process has not rendered all specs within {timeout:.0f} s", "less time")
    finally:
        # The provider may have started processes of its own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        renders = json.loads(response.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last_line = log.read_text(errors="replace").strip().splitlines()[-1:]
        return Finding(
            f"a new process ends with exit code {code}: {''.join(last_line) or 'no output'}", "a render"
        )
    if isinstance(renders, str):
        return Finding(f"a new process cannot render: {renders}", "a render")
    return list[str](renders)


def respond(request: dict[str, Any], file: str) -> None:
    """Render in the new process, write the renders or an error to the file, and end the process."""
    try:
        provider = LOADERS[request["way"]](request["where"])
        subject = Functions(provider, request["crd"], Cases(specs={"none": {}}))
        response: Any = [_as_json(subject.render(build_deployment(spec))) for spec in request["specs"]]
    except Broken as broken:
        response = broken.finding.seen
    except Unusable as error:
        response = str(error)
    Path(file).write_text(json.dumps(response), encoding="utf-8")
    end_programs()
    # Threads of the provider must not keep the process alive.
    os._exit(0)


def _as_json(rendered: Rendered) -> str:
    """Return JSON with sorted maps and helpers.

    Raises:
        TypeError: A value is not JSON.
    """
    helpers = sorted(json.dumps(helper, sort_keys=True) for helper in rendered.helpers)
    return json.dumps([rendered.main, helpers, rendered.image], sort_keys=True)


def _describe_difference(before: str, after: str) -> str:
    pairs = enumerate(zip(before, after, strict=False))
    position = next(index for index, (left, right) in pairs if left != right)
    return " is ".join(f"…{text[max(0, position - 40) : position + 40]}…" for text in (before, after))
