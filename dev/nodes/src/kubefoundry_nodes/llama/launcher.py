"""`llama-server` from a wheel: llama.cpp's own command line and HTTP server, without a program of its own.

The wheel xllamacpp holds llama.cpp as a library. Its `common_params_parse` reads the command line and the LLAMA_ARG_
variables as llama-server does (llama.cpp common/arg.cpp), refusals included, and its server code answers
(tools/server). What is missing is the `main` that joins the two, which is here. No router mode: a model has to be
named.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Final

import xllamacpp
from xllamacpp import xllamacpp as library

PARSE: Final = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
"""`bool common_params_parse(int, char **, common_params &, llama_example, void (*)(int, char **))`."""

SERVER: Final = 12
"""LLAMA_EXAMPLE_SERVER (llama.cpp common/common.h)."""

FIRST_FIELD: Final = object.__basicsize__
"""Where a CommonParams holds its common_params, which is its first member (xllamacpp.pyx)."""

ENDING: Final = {signal.SIGTERM, signal.SIGINT}


def parsed(words: list[str]) -> xllamacpp.CommonParams:
    """Ends the process with code 1 where llama.cpp refuses them; it has said why."""
    parse = getattr(ctypes.CDLL(library.__file__), PARSE)
    parse.restype = ctypes.c_bool
    params = xllamacpp.CommonParams()
    params.port = 8080
    argv = (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)
    if not parse(len(words), argv, ctypes.c_void_p(id(params) + FIRST_FIELD), SERVER, None):
        sys.exit(1)
    # One from a hub has its path once it is downloaded; the wheel's server asks for it before.
    params.model.path = params.model.path or params.model.hf_repo
    return params


def main() -> None:
    params = parsed(sys.argv)
    # All threads inherit this: the server's would end the process else.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        # llama.cpp has said why.
        sys.exit(1)
    signal.sigwait(ENDING)
    # Ends its threads.
    del server


if __name__ == "__main__":
    main()
