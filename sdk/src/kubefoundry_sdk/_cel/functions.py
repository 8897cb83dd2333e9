"""The functions that a rule may call: CEL's own, Kubernetes' string functions, and `quantity`.

One table serves the lint (calls and their arguments) and the evaluator (implementations). Sources:
cel-spec langdef "Functions"; cel-go ext/strings version 0, in Kubernetes since 1.26; Kubernetes' CEL quantity library
(1.28). Python's conversions are more lenient than CEL's (`int(' 5 ')`, `float('nan')`), so these check for
themselves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from celpy.celtypes import BoolType, DoubleType, IntType, ListType, MapType, StringType, UintType
from celpy.evaluation import function_matches

from kubefoundry_sdk._cel import quantity
from kubefoundry_sdk._cel.schema import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    STRING,
    TYPE,
    UINT,
    ListOf,
    Type,
)

MAX_TEXT: Final = 1 << 18
"""The most characters that `replace` may return: no annotation in Kubernetes is longer."""

_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}
# Unicode's White_Space, as Go's unicode.IsSpace; Python's strip() also removes some control characters
_WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Function:
    """A permitted call.

    Attributes:
        parameters: The types of the arguments, the receiver of a method first.
        implementation: Raises TypeError for operands without an overload, ValueError for a bad value.
        optional: The number of parameters at the end that may be omitted.
    """

    implementation: Callable[..., Any]
    parameters: tuple[Type, ...]
    result: Type
    optional: int = 0


def _texts(*values: Any) -> None:
    if not all(isinstance(value, StringType) for value in values):
        raise TypeError("no overload: a string is needed")


def _size(value: Any) -> IntType:
    if not isinstance(value, (StringType, ListType, MapType)):
        raise TypeError("no overload of size")
    return IntType(len(value))


def _int(value: Any) -> IntType:
    if isinstance(value, (IntType, UintType)):
        return IntType(int(value))
    if isinstance(value, DoubleType) and math.isfinite(value):
        return IntType(math.trunc(value))
    if isinstance(value, StringType) and _WHOLE.fullmatch(value):
        return IntType(int(value))
    raise TypeError("no overload of int")


def _uint(value: Any) -> UintType:
    if isinstance(value, StringType) and _WHOLE.fullmatch(value):
        return UintType(int(value))
    return UintType(int(_int(value)))


def _double(value: Any) -> DoubleType:
    if isinstance(value, (IntType, UintType, DoubleType)):
        return DoubleType(float(value))
    if isinstance(value, StringType) and _REAL.fullmatch(value):
        return DoubleType(float(value))
    raise TypeError("no overload of double")


def _string(value: Any) -> StringType:
    if isinstance(value, StringType):
        return value
    if isinstance(value, BoolType):
        return StringType("true" if value else "false")
    if isinstance(value, (IntType, UintType)):
        return StringType(str(int(value)))
    if isinstance(value, DoubleType):
        return StringType(repr(float(value)).removesuffix(".0"))
    raise TypeError("no overload of string")


def _bool(value: Any) -> BoolType:
    if isinstance(value, BoolType):
        return value
    if isinstance(value, StringType) and value in _BOOLS:
        return BoolType(_BOOLS[value])
    raise TypeError("no overload of bool")


def _type(value: Any) -> type:
    return type(value)


def _contains(text: Any, part: Any) -> BoolType:
    _texts(text, part)
    return BoolType(part in text)


def _starts_with(text: Any, part: Any) -> BoolType:
    _texts(text, part)
    return BoolType(text.startswith(part))


def _ends_with(text: Any, part: Any) -> BoolType:
    _texts(text, part)
    return BoolType(text.endswith(part))


def _matches(text: Any, pattern: Any) -> Any:
    _texts(text, pattern)
    return function_matches(text, pattern)


def _lower(text: Any) -> StringType:
    _texts(text)
    return StringType(text.translate(_ASCII_LOWER))


def _upper(text: Any) -> StringType:
    _texts(text)
    return StringType(text.translate(_ASCII_UPPER))


def _trim(text: Any) -> StringType:
    _texts(text)
    return StringType(text.strip(_WHITE_SPACE))


def _replace(text: Any, old: Any, new: Any, limit: Any = None) -> StringType:
    _texts(text, old, new)
    times = text.count(old) if limit is None or limit < IntType(0) else min(text.count(old), int(limit))
    if len(text) + times * (len(new) - len(old)) > MAX_TEXT:
        raise ValueError("the result of replace is too long")
    return StringType(text.replace(old, new, times))


def _split(text: Any, separator: Any, limit: Any = None) -> ListType:
    _texts(text, separator)
    most = -1 if limit is None or limit < IntType(0) else int(limit)
    if most == 0:
        return ListType([])
    if separator == "":
        parts = list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]
    else:
        parts = text.split(separator, most - 1 if most > 0 else -1)
    return ListType([StringType(part) for part in parts])


def _substring(text: Any, start: Any, end: Any = None) -> StringType:
    _texts(text)
    first, last = int(start), len(text) if end is None else int(end)
    if not 0 <= first <= last <= len(text):
        raise ValueError("substring outside the string")
    return StringType(text[first:last])


def _index_of(text: Any, part: Any, start: Any = None) -> IntType:
    _texts(text, part)
    first = 0 if start is None else int(start)
    if not 0 <= first <= len(text):
        raise ValueError("indexOf outside the string")
    return IntType(text.find(part, first))


FUNCTIONS: Final[Mapping[str, Function]] = {
    "size": Function(_size, (DYN,), INT),
    "int": Function(_int, (DYN,), INT),
    "uint": Function(_uint, (DYN,), UINT),
    "double": Function(_double, (DYN,), DOUBLE),
    "string": Function(_string, (DYN,), STRING),
    "bool": Function(_bool, (DYN,), BOOL),
    "type": Function(_type, (DYN,), TYPE),
    "matches": Function(_matches, (STRING, STRING), BOOL),
    "quantity": Function(quantity.parse, (DYN,), QUANTITY),
    "isQuantity": Function(quantity.is_quantity, (DYN,), BOOL),
}
"""Called as `name(...)`."""

METHODS: Final[Mapping[str, Function]] = {
    "size": FUNCTIONS["size"],
    "matches": FUNCTIONS["matches"],
    "contains": Function(_contains, (STRING, STRING), BOOL),
    "startsWith": Function(_starts_with, (STRING, STRING), BOOL),
    "endsWith": Function(_ends_with, (STRING, STRING), BOOL),
    "lowerAscii": Function(_lower, (STRING,), STRING),
    "upperAscii": Function(_upper, (STRING,), STRING),
    "trim": Function(_trim, (STRING,), STRING),
    "replace": Function(_replace, (STRING, STRING, STRING, INT), STRING, optional=1),
    "split": Function(_split, (STRING, STRING, INT), ListOf(STRING), optional=1),
    "substring": Function(_substring, (STRING, INT, INT), STRING, optional=1),
    "indexOf": Function(_index_of, (STRING, STRING, INT), INT, optional=1),
    "isGreaterThan": Function(quantity.greater, (QUANTITY, QUANTITY), BOOL),
    "isLessThan": Function(quantity.less, (QUANTITY, QUANTITY), BOOL),
    "compareTo": Function(quantity.compare, (QUANTITY, QUANTITY), INT),
    "isInteger": Function(quantity.is_integer, (QUANTITY,), BOOL),
    "asInteger": Function(quantity.as_integer, (QUANTITY,), INT),
}
"""Called as `receiver.name(...)`."""

IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    name: function.implementation for name, function in {**METHODS, **FUNCTIONS}.items()
}

TYPE_NAMES: Final[Mapping[str, type]] = {
    "bool": BoolType,
    "double": DoubleType,
    "int": IntType,
    "list": ListType,
    "map": MapType,
    "null_type": type(None),
    "string": StringType,
    "uint": UintType,
}
"""The names that `type(x)` may be compared with."""
