"""Calls functions of a program: numbers the requests, checks the responses, and restarts a program that fails."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._functions import messages, strict_json
from kubefoundry_sdk._functions.description import Description
from kubefoundry_sdk._functions.program import Program, ProgramError
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._runtime.backoff import Backoff

log = logging.getLogger(__name__)

DELAYS: Final = Backoff(1.0, 30.0)
"""Delays before the second and later starts in a row of which no request got a response. The first is immediate, so
that an object on which the program fails does not hold up the others."""

ENDED: Final = "its program has been ended, because the provider ends"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds until a response is due: to a call, and to the handshake, while the program may still load."""

    call: float = 5.0
    start: float = 30.0


class Client:
    """The functions of one program. Any thread may call them; requests are sent one after another."""

    def __init__(
        self, command: Sequence[str], settings: messages.Settings, deadlines: Deadlines | None = None
    ) -> None:
        self._program = Program(command)
        self._settings = settings.model_dump(by_alias=True)
        self._deadlines = deadlines or Deadlines()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._description: Description | None = None
        self._closed = False
        self._failures = 0
        self._error = ""
        self._not_before = 0.0

    def describe(self) -> Description:
        """Return the description, of which every later start has to give the same.

        Raise Fault if the program does not start, or does not describe a provider.
        """
        with self._lock:
            return self._running()

    def call(self, function: str, **arguments: Any) -> Any:
        """Return the result of a function. Raise Fault, with what the program did, if there is no valid result."""
        with self._lock:
            description = self._running()
            request = {"protocol": description.protocol, **arguments}
            result = self._request(function, request, self._deadlines.call)
            self._failures = 0
            return result

    def close(self) -> None:
        """End the program. Every later call fails."""
        self._closed = True
        # Without the lock, so that a call which waits for the program ends now and not at its deadline.
        self._program.kill()
        with self._lock:
            self._program.stop()

    def _running(self) -> Description:
        """Start the program unless it runs, and return its description."""
        if self._closed:
            raise ProgramError(ENDED)
        if self._program.is_running and (unexpected := self._program.unexpected()):
            self._failed(unexpected)
        if self._program.is_running and self._description is not None:
            return self._description
        if time.monotonic() < self._not_before:
            raise ProgramError(self._error)
        try:
            self._program.start()
        except ProgramError as error:
            self._failed(str(error))
            raise
        if self._closed:
            # `close` found no program to kill: it was about to start.
            self._program.stop()
            raise ProgramError(ENDED)
        arguments = {"protocols": list(messages.PROTOCOLS)}
        description = self._request("describe", arguments, self._deadlines.start)
        self._check(description)
        self._description = description
        return self._description

    def _check(self, description: Description) -> None:
        problem = ""
        if description.protocol not in messages.PROTOCOLS:
            known = ", ".join(map(str, messages.PROTOCOLS))
            problem = f"its program speaks protocol {description.protocol}, and this SDK {known}"
        elif self._description is not None and description != self._description:
            problem = "its program describes another provider than before its restart; restart this process"
        if problem:
            self._failed(problem)
            raise ProgramError(problem)

    def _request(self, function: str, arguments: dict[str, Any], seconds: float) -> Any:
        request_id = next(self._ids)
        request = {"id": request_id, "function": function, "settings": self._settings, **arguments}
        try:
            response = self._program.exchange(strict_json.encode(request), function, seconds)
            return messages.read(function, response, request_id)
        except (ProgramError, messages.Lie) as error:
            self._failed(str(error))
            raise
        except Fault as error:
            if function == "describe":
                self._failed(str(error))
            raise

    def _failed(self, error: str) -> None:
        """End the program. The next call starts it again, after a delay if it keeps failing."""
        self._program.stop()
        self._failures += 1
        self._error = error
        delay = DELAYS.after(self._failures - 1) if self._failures > 1 else 0.0
        self._not_before = time.monotonic() + delay
        if not self._closed:
            values = logs.values(error=error, seconds=delay)
            log.warning("the program ended; the next call after this delay starts it again", extra=values)
