"""A program with a provider's functions that misbehaves in one way: what the hostile tests of functions start.

    python hostile_functions.py WAY [DESCRIPTION]

It misbehaves in `supports`, or in another function for WAY `FUNCTION:…`. It describes Widgets, or what the file
DESCRIPTION has.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

DESCRIPTION: Final[dict[str, Any]] = {
    "protocol": 1,
    "name": "widgets",
    "title": "Widgets",
    "version": "0.1.0",
    "capabilities": {
        "engines": ["vllm"],
        "servingModes": ["aggregated"],
        "cpuSupport": False,
        "gpuSupport": True,
    },
    "upstream": {"group": "example.com", "plural": "widgets", "kind": "Widget"},
    "fields": {"v1": {"needed": ["spec.model"]}},
}
DEEP: Final = 5000


def write(text: str | bytes) -> None:
    """Write to the SDK, as far as it reads."""
    raw = text if isinstance(text, bytes) else text.encode()
    while raw:
        raw = raw[os.write(1, raw) :]


def line(request: dict[str, Any], **response: Any) -> str:
    return json.dumps({"id": request["id"], **response}) + "\n"


def slow(response: str) -> None:
    for character in response:
        write(character)
        time.sleep(0.2)


def endless(_: str) -> None:
    while True:
        write(b" " * 65536)


def close(_: str) -> None:
    os.close(1)
    time.sleep(3600)


def half(response: str) -> None:
    write(response.strip())
    sys.exit(0)


def end_once(response: str) -> None:
    """End, but only at the first call with this description."""
    marker = Path(sys.argv[2]).with_suffix(".ended")
    if not marker.exists():
        marker.touch()
        sys.exit(4)
    write(response.replace("[]", '{"apiVersion": "example.com/v1"}'))


ACTS: Final[dict[str, Callable[[str], object]]] = {
    "silent": lambda _: time.sleep(3600),
    "slow": slow,
    "huge": lambda _: write(b'{"id": ' + b" " * 100_000_000),
    "endless": endless,
    "deep": lambda response: write(response.replace("[]", "[" * DEEP + "]" * DEEP)),
    "exit": lambda _: sys.exit(3),
    "signal": lambda _: os.kill(os.getpid(), 9),
    "closed": close,
    "two lines": lambda response: write(response * 2),
    "half a line": half,
    "ends once": end_once,
}
"""What the program does in place of the response that it gets."""

TEXTS: Final = {
    "wrong id": '{"id": 77777, "result": []}\n',
    "id as text": '{"id": "ID", "result": []}\n',
    "no id": '{"result": []}\n',
    "id true": '{"id": true, "result": []}\n',
    "not JSON": "hello\n",
    "empty": "\n",
    "a list": "[]\n",
    "NaN": '{"id": ID, "result": [NaN]}\n',
    "infinite": '{"id": ID, "result": [1e999]}\n',
    "digits": '{"id": ID, "result": [' + "9" * 400 + "]}\n",
    "not UTF-8": '{"id": ID, "result": ["\udcff"]}\n',
    "half a pair": '{"id": ID, "result": ["\\ud800"]}\n',
    "repeated key": '{"id": ID, "result": [], "result": ["no"]}\n',
    "late repetition": '{"id": ID, "result": {'
    + "".join(f'"{number}":0,' for number in range(200_000))
    + '"z":0,"z":0}}\n',
    "unknown key": '{"id": ID, "result": [], "more": 1}\n',
    "both": '{"id": ID, "result": [], "error": "no"}\n',
    "neither": '{"id": ID}\n',
    "empty error": '{"id": ID, "error": ""}\n',
    "error": '{"id": ID, "error": "out of widgets"}\n',
    "not a list": '{"id": ID, "result": "no"}\n',
    "not sentences": '{"id": ID, "result": [1]}\n',
    "blank sentence": '{"id": ID, "result": [" "]}\n',
}
"""Lines by the way in which they are wrong."""


def main() -> None:
    place, _, way = sys.argv[1].rpartition(":")
    if way == "chatty":
        print("out of widgets", file=sys.stderr, flush=True)
    for raw in sys.stdin:
        request = json.loads(raw)
        if request["function"] == (place or "supports") and way != "chatty":
            if way in ACTS:
                ACTS[way](line(request, result=[]))
            else:
                text = TEXTS[way].replace("ID", str(request["id"]))
                write(text.encode("utf-8", "surrogateescape"))
        elif request["function"] == "describe":
            description = json.loads(Path(sys.argv[2]).read_text()) if sys.argv[2:] else DESCRIPTION
            write(line(request, result=description))
        else:
            write(line(request, result=[]))


if __name__ == "__main__":
    main()
