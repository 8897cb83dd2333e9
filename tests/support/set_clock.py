"""`python -m support.set_clock`: run `kubefoundry-core` with a clock that is ahead by the days in a file."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from kubefoundry_core import certificate_keeper, main

FILE = "CLOCK_AHEAD_FILE"
"""Environment variable with the file's path."""


class Clock(datetime):
    """A datetime class whose `now` is ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=int(Path(os.environ[FILE]).read_text()))


if __name__ == "__main__":
    sys.argv[0] = main.PROGRAM
    certificate_keeper.datetime = Clock  # type: ignore[attr-defined]
    main.main()
