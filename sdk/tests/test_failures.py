"""When a failed write is reported and when it is tried again."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.conditions import MAX_MESSAGE, clip, condition
from kubefoundry_sdk._cluster.errors import ApiError, Repeated
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._provider.reconcile import dry_run
from kubefoundry_sdk._provider.reconcile.failures import Failures, mark, stop
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._runtime.backoff import FAULT_DELAY, OBJECT
from support.plans import provider

STOP = Stop("ResourceCreated", "ApplyFailed", "no", failed=False)
PASSING = ApiError(500, "InternalError", "a webhook is down")


CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def note(
    failures: Failures, error: Exception, now: float, mark: str = "a", version: str = "1"
) -> tuple[Report, float]:
    report = Report(1)
    return report, failures.note(mark, version, error, report, STOP, now)


@pytest.mark.parametrize("error", [PASSING, ApiError(403, "Forbidden", "roles not read yet")])
def test_passing_error_is_reported_at_its_second_occurrence(error: Exception) -> None:
    failures = Failures()

    first, delay = note(failures, error, 0.0)
    assert first.stop is None
    assert delay < 1
    assert failures.pending("a", "1", 0.1) is not None
    second, _ = note(failures, error, 1.0)
    assert second.stop == STOP
    received, left = failures.pending("a", "1", 1.1) or (None, 0.0)
    assert received is not None and received.stop == STOP
    assert left > 0


@pytest.mark.parametrize("error", [ApiError(422, "Invalid", "no"), ZeroDivisionError("x")])
def test_permanent_failure_is_reported_at_once(error: Exception) -> None:
    report, _ = note(Failures(), error, 0.0)

    assert report.stop == STOP


def test_delay_doubles_up_to_its_limit() -> None:
    failures = Failures()

    delays = [note(failures, PASSING, 0.0)[1] for _ in range(2000)]

    assert delays[0] <= 0.24
    assert delays[3] > delays[0]
    assert max(delays) <= FAULT_DELAY * 1.2
    assert delays[-1] >= FAULT_DELAY * 0.8


@pytest.mark.parametrize(("asked", "delay"), [(2.0, 2.0), (86400.0, OBJECT.last)])
def test_retry_waits_for_retry_after_up_to_the_longest_delay(asked: float, delay: float) -> None:
    error = ApiError(429, "TooManyRequests", "later", retry_after=asked)

    assert delay <= note(Failures(), error, 0.0)[1] <= delay * 1.2


def test_server_that_always_asks_for_a_second_is_asked_less() -> None:
    failures = Failures()
    error = ApiError(429, "TooManyRequests", "later", retry_after=1)

    delays = [note(failures, error, 0.0)[1] for _ in range(12)]

    assert 1.0 <= delays[0] <= 1.2
    assert min(delays[9:]) >= FAULT_DELAY * 0.8


def test_edit_after_failure_is_tried_at_once() -> None:
    failures = Failures()
    note(failures, PASSING, 0.0)
    note(failures, PASSING, 0.0)

    assert failures.pending("b", "1", 0.0) is None
    assert note(failures, PASSING, 0.0, mark="b")[0].stop is None


def test_conflict_is_retried_at_once_three_times() -> None:
    failures = Failures()

    for version in ("1", "2", "3"):
        report, _ = note(failures, CONFLICT, 0.0, version=version)
        assert report.stop is None
        assert failures.pending("a", version, 0.0) is not None
        assert failures.pending("a", f"later than {version}", 0.0) is None
    report, _ = note(failures, CONFLICT, 0.0, version="4")

    assert report.stop == STOP
    assert failures.pending("a", "5", 0.0) is not None


def test_repeated_foreign_conflict_is_reported() -> None:
    failures = Failures()
    note(failures, CONFLICT, 0.0)

    assert note(failures, CONFLICT, 1.0)[0].stop == STOP
    assert failures.pending("a", "2", 1.0) is not None


@pytest.mark.parametrize("error", [PASSING, ApiError(422, "Invalid", "no")])
def test_failure_backs_off_when_its_object_changes(error: ApiError) -> None:
    failures = Failures()
    note(failures, error, 0.0)

    assert failures.pending("a", "2", 0.0) is not None


def deployment(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m", "namespace": "n", "uid": "u", "generation": 1, **metadata}}


@pytest.mark.parametrize(
    ("other", "upstream", "digest", "changed"),
    [
        (deployment(), None, "d", False),
        (deployment(resourceVersion="9"), None, "d", False),
        (deployment(annotations={"kubefoundry.ai/dry-run-result": "x"}), None, "d", False),
        (deployment(annotations={"kubefoundry.ai/refresh": "1"}), None, "d", True),
        (deployment(finalizers=["own"]), None, "d", False),
        (deployment(finalizers=["another's"]), None, "d", True),
        (deployment(generation=2), None, "d", True),
        (deployment(labels={"a": "b"}), None, "d", True),
        (deployment(), {"metadata": {"uid": "x"}}, "d", True),
        (deployment(), None, "another", True),
    ],
)
def test_retry_mark_changes_with_relevant_input(
    other: dict[str, Any], upstream: dict[str, Any] | None, digest: str, changed: bool
) -> None:
    assert (mark(other, upstream, digest, "own") != mark(deployment(), None, "d", "own")) is changed


def test_internal_error_is_described_in_one_short_line() -> None:
    text = described(KeyError("a\nb" * 10_000))

    assert text.startswith("KeyError: ")
    assert "\n" not in text
    assert len(text) < 400


@pytest.mark.parametrize("length", [0, 1, MAX_MESSAGE, MAX_MESSAGE + 1, MAX_MESSAGE * 40])
def test_long_message_keeps_both_ends(length: int) -> None:
    message = "begin " + "x" * length + " end"

    text = condition("Ready", False, "Failed", message, generation=1)["message"]

    assert len(text) <= MAX_MESSAGE
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert clip(text) == text


@pytest.mark.parametrize("code", [0xD800, 0xDC80, 0xDFFF])
def test_half_of_a_surrogate_pair_is_written_as_escape(code: int) -> None:
    """Otherwise the stored text differs from the one that was sent."""
    assert clip(f"a{chr(code)}b") == rf"a\u{code:x}b"


@given(st.text())
def test_message_obeys_nobody(text: str) -> None:
    written = clip(f"{text}\x1b[31m\x00\u202e")

    assert written.endswith(r"\x1b[31m\x00\u202e")
    assert not {char for char in written if unicodedata.category(char) == "Cc"} - {"\t", "\n"}
    assert clip(written) == written


@pytest.mark.parametrize(
    ("code", "words", "rejected"),
    [
        (500, "etcdserver: request is too large", True),
        (
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (1 vs. 0)",
            True,
        ),
        (500, "etcdserver: leader changed", False),
        (413, "Request entity too large: limit is 3145728", True),
        (409, "the object has been modified", False),
    ],
)
def test_too_large_request_is_a_rejection(code: int, words: str, rejected: bool) -> None:
    assert ApiError(code, "x", words).rejected is rejected


@pytest.mark.parametrize(("size", "fits"), [(10, True), (dry_run.LARGEST, False), (2**21, False)])
def test_dry_run_result_fits_its_annotation(size: int, fits: bool) -> None:
    text = dry_run.text_of({"accepted": True, "message": "m" * size, "objects": [{"x": "y" * size}]})

    assert len(text.encode()) <= dry_run.LARGEST
    assert ("omitted" not in text) is fits


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (
            "PATCH /apis/kubefoundry.ai/v1alpha1/namespaces/n/modeldeployments/m",
            "patch ModelDeployment 'm': ",
        ),
        ("PATCH /apis/example.com/v1/namespaces/n/engines/m", "patch Engine 'm': "),
        ("POST /apis/example.com/v1/namespaces/n/engines?fieldManager=x", "create Engine: "),
        ("PUT /apis/example.com/v1/namespaces/n/engines/m/status", "update status of Engine 'm': "),
        ("DELETE /api/v1/namespaces/n/configmaps/m-config", "delete ConfigMap 'm-config': "),
        ("GET /apis/example.com/v2/namespaces/n/engines/m", "read Engine 'm': "),
        ("GET /api/v1/namespaces/n", "read namespaces 'n': "),
        ("WATCH /apis/example.com/v1/engines", ""),
        ("PATCH /x", ""),
        ("", ""),
    ],
)
def test_failed_request_is_named_with_its_object(request_: str, named: str) -> None:
    denied = ApiError(404, "Unknown", 'admission webhook "w" denied the request', request=request_)
    rejected = ApiError(422, "Invalid", "no", request=request_)

    assert stop(provider(), denied).message == (
        f'A write failed and is tried again: {named}404 Unknown: admission webhook "w" denied the request'
    )
    assert stop(provider(), rejected).message == (
        f"The API server refused a write of provider example: {named}no"
    )


def test_held_back_write_is_no_answer_of_the_server() -> None:
    message = stop(provider(), Repeated("PATCH /x", 10, 20.0)).message

    assert message.startswith(
        "A write is held back: this write was sent 10 times in a row and does not last: "
    )
    assert "429" not in message and "deletes the object" in message
