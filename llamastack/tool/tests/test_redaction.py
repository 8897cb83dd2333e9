"""Tests which forms of a secret are removed from a text, and that all other text stays."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections.abc import Callable

import pytest

from llamastack_providers.redaction import Redaction

SECRETS = {
    "of letters and signs": "Tr0ub4dor&3-correct/horse+battery",
    "of other scripts": "pä¤swörd-ü€ß-geheim-密码",
    "that looks like escapes": "%%25%41%pass\\x41%word&#65;",
    "of several lines": "line one\nline two\tend",
}


def percent(value: str) -> str:
    return "".join(f"%{byte:02X}" for byte in value.encode())


def quoted(value: str) -> str:
    return urllib.parse.quote(value, safe="")


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in upper case": str.upper,
    "backwards": lambda value: value[::-1],
    "quoted by Python": repr,
    "quoted twice by Python": lambda value: repr(repr(value)),
    "as bytes of Python": lambda value: repr(value.encode()),
    "in JSON": json.dumps,
    "in HTML": html.escape,
    "in a URL": quoted,
    "in a URL within a URL": lambda value: quoted(quoted(value)),
    "with each byte as in a URL": percent,
    "with each byte as in a URL within two URLs": lambda value: quoted(quoted(percent(value))),
    "in hexadecimal": lambda value: value.encode().hex(),
    "in hexadecimal with colons": lambda value: value.encode().hex(":"),
    "in hexadecimal with hyphens": lambda value: value.encode().hex("-"),
    "in hexadecimal with spaces": lambda value: value.encode().hex(" ", 4),
    "in hexadecimal of C": lambda value: "".join(f"\\x{one:02x}" for one in value.encode()),
    "in hexadecimal of a list": lambda value: ", ".join(f"0x{one:02X}" for one in value.encode()),
    "in octal": lambda value: "".join(f"\\{one:03o}" for one in value.encode()),
    "in numbers of HTML": lambda value: "".join(f"&#{ord(one)};" for one in value),
    "in hexadecimal of HTML": lambda value: "".join(f"&#x{ord(one):x};" for one in value),
    "in code points of JSON": lambda value: "".join(f"\\u{ord(one):04x}" for one in value),
    "in base64": lambda value: base64.b64encode(value.encode()).decode(),
    "in base64 with separators": lambda value: ".".join(base64.b64encode(value.encode()).decode()),
    "letter by letter": "-".join,
    "letter by letter over lines": ",\n".join,
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_redaction_removes_secret(secret: str, form: Callable[[str], str]) -> None:
    hidden = Redaction({"KEY": secret}, frozenset({"KEY"}))

    shown = hidden.clean(f"refused <{form(secret)}> by the server")

    assert shown.count("${env.KEY}") == 1
    assert len(shown.replace("${env.KEY}", "")) <= len("refused <''> by the server") + 12, shown
    assert shown.startswith("refused <") and shown.endswith("> by the server")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_redaction_removes_part_of_secret(form: Callable[[str], str]) -> None:
    hidden = Redaction({"KEY": SECRETS["of letters and signs"]}, frozenset({"KEY"}))

    assert "${env.KEY}" in hidden.clean(form(SECRETS["of letters and signs"][3:15]))


def test_redaction_keeps_other_words() -> None:
    hidden = Redaction({"KEY": "Tr0ub4dor", "MODE": "a-b", "PORT": "8000"}, frozenset({"KEY"}))
    text = "line 12, in acme_echo-1.0.0: 100 % of \\x41bc, 0x41 & &#65; &#9999999; %zz a, b"

    assert hidden.clean(text) == text


@pytest.mark.slow
def test_redaction_takes_seconds_for_megabyte_of_escapes() -> None:
    hidden = Redaction({"KEY": "Tr0ub4dor"}, frozenset({"KEY"}))

    assert hidden.clean("%25" * 350_000) == "%25" * 350_000
