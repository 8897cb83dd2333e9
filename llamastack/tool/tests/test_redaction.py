"""Tests which forms of a secret are removed from a text, and that all other text stays."""

from __future__ import annotations

import base64
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


def quoted(value: str) -> str:
    return urllib.parse.quote(value, safe="")


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in upper case": str.upper,
    "over lines": lambda value: f"{value[:9]}\n  {value[9:]}",
    "quoted by Python": repr,
    "as bytes of Python": lambda value: repr(value.encode()),
    "in JSON": json.dumps,
    "in a URL": quoted,
    "in a path of a URL": urllib.parse.quote,
    "in a form": urllib.parse.quote_plus,
    "in base64": lambda value: base64.b64encode(value.encode()).decode(),
    "in base64 for addresses": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "in base64 behind a name": lambda value: base64.b64encode(f"user:{value}".encode()).decode()[7:],
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
