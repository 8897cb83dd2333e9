"""Log lines: the object that is reconciled, constant messages with values, bounds."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._runtime.status_changes import WORDS, changes
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)


class Written(logging.Handler):
    """Keeps each line as it is written."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(params=["json", "text"])
def written(request: pytest.FixtureRequest) -> Iterator[Written]:
    handler = Written(logs._Json() if request.param == "json" else logs._Text())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)


def shown(line: str) -> dict[str, Any]:
    """Return a JSON line without its time and logger, a line of text after its time and level."""
    if line.startswith("{"):
        return {name: value for name, value in json.loads(line).items() if name not in ("time", "logger")}
    return {"text": line.split(maxsplit=2)[2]}


async def test_lines_of_a_reconcile_name_the_object(written: Written) -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        logs.read({"kind": "ModelDeployment", "metadata": {"generation": 3}})
        await asyncio.sleep(0)
        log.info("status changed", extra=logs.values(phase="Running", conditions={"Ready": "True Serves"}))
        done.set()

    queue = WorkQueue("logs", reconcile)
    queue.add(("team", "qwen"))
    workers = asyncio.create_task(queue.run(2))
    await done.wait()
    workers.cancel()
    log.info("about no object")

    about = {"namespace": "team", "name": "qwen", "kind": "ModelDeployment", "generation": 3}
    values = {"phase": "Running", "conditions": {"Ready": "True Serves"}}
    assert [shown(line) for line in written.lines] in (
        [
            {"level": "info", "message": "status changed", **about, **values},
            {"level": "info", "message": "about no object"},
        ],
        [
            {"text": 'team/qwen: status changed phase=Running conditions={"Ready": "True Serves"}'},
            {"text": "about no object"},
        ],
    )


def test_line_about_cluster_scoped_object_has_its_name_only(written: Written) -> None:
    with logs.about("", "direct"):
        log.info("status changed")

    assert [shown(line) for line in written.lines] in (
        [{"level": "info", "message": "status changed", "name": "direct"}],
        [{"text": "direct: status changed"}],
    )


async def test_lines_of_two_workers_name_their_own_objects(written: Written) -> None:
    met = asyncio.Barrier(2)
    done = asyncio.Barrier(3)

    async def reconcile(key: Key) -> None:
        await met.wait()
        log.info("met")
        await done.wait()

    queue = WorkQueue("logs", reconcile)
    queue.add(("a", "m"))
    queue.add(("b", "m"))
    workers = asyncio.create_task(queue.run(2))
    await done.wait()
    workers.cancel()

    named = {item.get("namespace") or item["text"][0] for item in map(shown, written.lines)}
    assert named == {"a", "b"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Running", "x=Running"),
        ("two words", 'x="two words"'),
        ("", 'x=""'),
        ('a"b', 'x="a\\"b"'),
        (3, "x=3"),
    ],
)
def test_value_is_quoted_if_it_is_not_one_word(value: object, text: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "x", 1, "said", None, None)
    setattr(record, logs.VALUES, {"x": value})

    assert logs._Text().format(record).endswith(f"said {text}")


@pytest.mark.parametrize(
    "value", ["y" * 400_000, {str(number): "y" * 500 for number in range(900)}, ["y"] * 90_000]
)
def test_values_are_bounded(value: object, written: Written) -> None:
    log.info("said", extra=logs.values(note=value))

    assert len(written.lines[0]) < 1.5 * logs.MESSAGE


@pytest.mark.parametrize(
    "forged",
    [
        "no\n2026-11-29T12:00:00.000Z INFO    team-a/qwen: status changed phase=Running",
        "no\r\nyes",
        "no\u2028yes",
        "no\x85yes",
        "\x1b[2Jyes",
        "\x9b2Jyes",
    ],
)
def test_text_of_strangers_stays_in_its_line(forged: str, written: Written) -> None:
    with logs.about("n", forged):
        logs.read({"kind": forged, "metadata": {"generation": forged}})
        log.info("message %s", forged, extra=logs.values(value=forged, values=[forged]))

    (line,) = written.lines
    assert line.splitlines() == [line] and line.isprintable()


def test_line_of_an_exception_cannot_be_taken_for_one_of_the_log(written: Written) -> None:
    try:
        raise ValueError("no\n2026-11-29T12:00:00.000Z INFO    forged")
    except ValueError:
        log.exception("internal error")

    (written_text,) = written.lines
    assert not any(line.startswith("2026-11-29T12:00:00.000Z") for line in written_text.splitlines())


def test_name_of_an_object_is_bounded(written: Written) -> None:
    with logs.about("n" * 100_000, "m" * 100_000):
        logs.read({"kind": "k" * 100_000, "metadata": {"generation": ["g" * 100_000]}})
        log.info("said")

    assert len(written.lines[0]) < 5 * logs.SHOWN


def test_value_replaces_no_part_of_the_line(written: Written) -> None:
    with logs.about("n", "m"):
        log.info("said", extra=logs.values(name="other", message="other"))

    assert shown(written.lines[0]) in (
        {"level": "info", "message": "said", "namespace": "n", "name": "m"},
        {"text": "n/m: said name=other message=other"},
    )


def test_lines_of_a_second_are_limited_and_the_last_one_says_so() -> None:
    limit = logs.Limit(3)
    records = [logging.LogRecord("x", logging.INFO, "x", 1, "refused %d", (n,), None) for n in range(6)]
    for record, second in zip(records, [7.0, 7.1, 7.2, 7.3, 7.9, 8.0], strict=True):
        record.created = second

    passed = [record.getMessage() for record in records if limit.filter(record)]

    assert passed == [
        "refused 0",
        "refused 1",
        "more lines of this kind in this second are not logged",
        "refused 5",
    ]


def condition(status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, {}),
        ({}, {"phase": "Pending"}, {"phase": "Pending"}),
        ({"phase": "Pending"}, {"phase": "Pending", "message": "1 of 2 pods"}, {}),
        ({"phase": "Running"}, {}, {}),
        ({}, {"provider": {"name": "direct"}}, {"provider": "direct"}),
        ({"provider": {"name": "a"}}, {"provider": {"name": "b"}}, {"provider": "b"}),
        ({}, {"conditions": [condition("True", "Serves")]}, {"conditions": {"Ready": "True Serves"}}),
        (
            {"conditions": [condition("False", "Starting", "1 of 2 pods")]},
            {"conditions": [condition("False", "Starting", "2 of 2 pods")]},
            {},
        ),
        (
            {"conditions": [condition("False", "Starting")]},
            {"conditions": [condition("False", "ApplyRejected", "quota exceeded")]},
            {"conditions": {"Ready": "False ApplyRejected: quota exceeded"}},
        ),
        ({"conditions": [condition("True", "Serves")]}, {}, {"conditions": {"Ready": "removed"}}),
    ],
)
def test_log_shows_what_a_write_changes(
    before: dict[str, Any], after: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changes(before, after) == expected


def test_log_shows_a_part_of_a_long_message() -> None:
    written = changes({}, {"conditions": [condition("False", "Failed", "x" * 30_000)]})

    assert len(written["conditions"]["Ready"]) < WORDS + 20
