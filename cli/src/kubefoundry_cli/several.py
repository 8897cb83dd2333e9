"""Run a command for each model of a file: the failure of one does not keep the others from their result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubefoundry_cli.failure import Exit, Failure


class Failures:
    """The failures of a command, each printed when it happens."""

    def __init__(self) -> None:
        self._codes: list[int] = []

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """Print a failure about one model, and go on. Raises Failure if the cluster cannot be reached."""
        try:
            yield
        except Failure as failure:
            if failure.exit_code == Exit.NO_CLUSTER:
                # It would be the same for each model.
                raise
            failure.show()
            self.note(failure.exit_code)

    def note(self, code: int) -> None:
        """Make the exit code at least this one."""
        self._codes.append(code)

    def end(self) -> None:
        """Exit with the worst code, if there is one."""
        if self._codes:
            raise SystemExit(max(self._codes))
