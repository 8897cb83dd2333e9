"""Durations of flags and options: as kubectl writes them, or a number of seconds."""

from __future__ import annotations

import argparse

import pytest

from kubefoundry_sdk._api.duration import parse
from kubefoundry_sdk._provider.run import parser
from kubefoundry_sdk.flags import duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20m", 1200.0),
        ("1h30m", 5400.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        ("1m.5s", 60.5),
        ("250ms", 0.25),
        ("0", 0.0),
        ("0s", 0.0),
        ("300", 300.0),
        ("0.2", 0.2),
        ("1e3", 1000.0),
        ("7\u03bcs", 7e-6),
    ],
)
def test_duration_is_read_as_kubectl_writes_it(text: str, expected: float) -> None:
    assert parse(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "20 m",
        "20m ",
        "1d",
        "m20",
        "20m5",
        "-5m",
        "1h-5m",
        "9" * 400 + "h",
        "1e300",
        "٣m",
        "٣",
        "1_000",
        " 5",
        "inf",
        "nan",
        ".",
    ],
)
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write 90s, 20m or 1h30m"):
        parse(text)


def test_flag_error_names_the_text_and_the_format() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="'5d' is not a duration: write 90s, 20m or 1h30m"):
        duration("5d")


def test_every_duration_flag_of_a_provider_reads_durations() -> None:
    flags = ("--finalizer-timeout", "--heartbeat-timeout", "--stale-after")

    parsed = parser("widgets").parse_args([f"{flag}=1h30m" for flag in flags])

    assert (parsed.finalizer_timeout, parsed.heartbeat_timeout, parsed.stale_after) == (5400.0,) * 3


def test_default_of_a_duration_flag_is_a_number() -> None:
    parsed = parser("widgets").parse_args([])

    assert (parsed.finalizer_timeout, parsed.heartbeat_timeout, parsed.stale_after) == (300.0, 180.0, 300.0)
