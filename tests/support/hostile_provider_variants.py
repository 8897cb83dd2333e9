"""More hostile providers: several variants of each kind of fault.

The faults are in a source, in the objects that a provider returns, or in the end of its process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from support.hostile_image_variants import NUMBER
from support.hostile_providers import Hostile, module, spec

UNREADABLE: Final = {
    "a NUL": b"x = 1\0\n",
    "UTF-16": "x = 1\n".encode("utf-16"),
    "an unknown coding": b"# coding: nowhere\n",
    "bytes that are no text": b"x = '\xff'\n",
    "brackets 10,000 deep": b"(" * 10_000,
    "minus signs 100,000 deep": b"x = " + b"-" * 100_000 + b"1\n",
    "an integer of 6,000 digits": f"x = {NUMBER}\n".encode(),
    "tabs and spaces": b"if 1:\n\tx = 1\n        y = 1\n",
    "half a line": b"x =\n",
}
ELSEWHERE: Final = {
    "a method": b"class A:\n    def get_provider_spec(self): ...\n",
    "within a function": b"def a():\n    def get_provider_spec(): ...\n",
    "a local name": b"def a():\n    get_provider_spec = 1\n",
    "with another name": b"def get_provider_specs(): ...\n",
    "an argument of lambda": b"a = lambda get_provider_spec: get_provider_spec\n",
}


def returns(expression: str) -> dict[str, str | bytes]:
    """Return a provider whose get_provider_spec returns the expression."""
    return {"acme_echo/provider.py": f"def get_provider_spec():\n    return {expression}\n"}


def config(body: str) -> dict[str, str | bytes]:
    """Return a provider with this body of the config class's constructor."""
    return {
        "acme_echo/__init__.py": f"class Config:\n    def __init__(self, **values):\n        {body}\n"
        "async def get_adapter_impl(config, deps): ...\n"
    }


PROVIDER_KINDS: Final[Mapping[str, Mapping[str, Hostile]]] = {
    "a source that is no Python": {
        name: Hostile({"acme_echo/provider.py": content}, "ImportFailed", ("acme_echo.provider",))
        for name, content in UNREADABLE.items()
    },
    "a function in the wrong place": {
        name: Hostile({"acme_echo/provider.py": content}, "SpecFunction")
        for name, content in ELSEWHERE.items()
    },
    "an import that raises": {
        name: Hostile(module(f"raise {name}"), "ImportFailed", (name.partition("(")[0],))
        for name in (
            *(
                "SystemExit(0)",
                "GeneratorExit",
                "MemoryError",
                "StopIteration",
                "BrokenPipeError",
                "RecursionError",
            ),
            *(
                "BaseExceptionGroup('g', [KeyboardInterrupt()])",
                "UnicodeDecodeError('utf-8', b'', 0, 1, 'x')",
            ),
        )
    },
    "an end of the process": {
        name: Hostile(module(f"import os, signal, sys\n{body}"), "ProbeDied")
        for name, body in {
            "with code 3": "os._exit(3)",
            "by another program": "os.execv('/bin/true', ['true'])",
            "by SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
            "by a wrong address": "import ctypes\nctypes.string_at(0)",
        }.items()
    },
    "a spec that is no spec": {
        expression: Hostile(returns(expression), "SpecInvalid")
        for expression in (
            "None",
            "{}",
            "[None]",
            "[]",
            "'remote::acme-echo'",
            "object",
            "(x for x in ())",
            "[[]]",
        )
    },
    "a spec that raises": {
        expression: Hostile(returns(expression), "SpecRaised", (word,))
        for expression, word in {
            "1 / 0": "ZeroDivisionError",
            "exit(0)": "SystemExit",
            "nothing": "NameError",
        }.items()
    },
    "a field of the spec": {
        f"{field} is {value}": Hostile(spec(**{field: value}), code)
        for field, value, code in (
            ("provider_type", "None", "SpecInvalid"),
            ("provider_type", "7", "SpecInvalid"),
            ("config_class", "None", "SpecInvalid"),
            ("config_class", '""', "SpecInvalid"),
            ("config_class", '"acme_echo.Gone"', "ConfigClass"),
            ("config_class", '"...."', "ConfigClass"),
            ("module", "None", "SpecInvalid"),
            ("module", '"acme_echo.provider"', "Implementation"),
            ("module", '"..acme"', "ImportFailed"),
            ("module", '"acme_echo\\0"', "ImportFailed"),
            ("api", '"nothing"', "SpecRaised"),
        )
    },
    "a configuration that is refused": {
        name: Hostile(config(body), "ConfigRejected")
        for name, body in {
            "by an error": "raise ValueError",
            "by an exit": "raise SystemExit",
            "by an error whose fields raise": "raise type('Odd', (Exception,), {'errors': lambda self: 1 / 0})",
            "by an error whose fields are odd": "raise type('Odd', (Exception,), {'errors': lambda self: [None]})",
            "by recursion": "self.__init__(**values)",
        }.items()
    },
}
PROVIDER_VARIANTS: Final = {
    f"{kind}: {name}": case for kind, cases in PROVIDER_KINDS.items() for name, case in cases.items()
}
LINTED: Final = ("a source that is no Python", "a function in the wrong place")
"""Kinds of faults that `lint` finds in the source."""
