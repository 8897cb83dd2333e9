"""The process `kubefoundry-llamastack`, the operator.

It runs LlamaStackDistributions, and adds providers when they are deployed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

from kubefoundry_llamastack.controller import set_up
from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk._api import formats
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import run

PROGRAM = "kubefoundry-llamastack"


def main() -> None:
    """Run the console script."""
    parser = options.parser(PROGRAM, "Runs LlamaStackDistributions.")
    options.flag(
        parser,
        "--provider-size-limit",
        "size limit of the volume that external providers are installed on",
        default="2Gi",
        read=parse_size,
    )
    options.flag(
        parser,
        "--init-resources",
        'requests and limits of the containers before the server, as JSON: {"requests": {"memory": "256Mi"}}',
        default="{}",
        read=parse_resources,
    )
    options.switch(
        parser,
        "--openshift-anyuid",
        "let each server's pods use any user id, on OpenShift; needs manifests/llamastack/openshift-anyuid",
    )
    options.switch(
        parser,
        "--provider-services",
        "run services of external providers (alpha); without it, a LlamaStackDistribution with one is refused",
    )
    options.flag(
        parser,
        "--native-sidecars",
        "start the services of providers as init containers that restart: true, false, or auto, which does so from "
        "Kubernetes 1.32 on; running pods keep their choice",
        default="auto",
        read=parse_choice,
    )
    options.mirror(parser)
    sys.exit(run(PROGRAM, parser.parse_args(), set_up, needs=LLSD.api_version))


def parse_size(text: str) -> str:
    """Return the quantity.

    Raises:
        ArgumentTypeError: The text is not a quantity.
    """
    if not re.fullmatch(formats.QUANTITY, text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a quantity such as 2Gi")
    return text


def parse_choice(text: str) -> str:
    """Return the text if it is auto, true or false.

    Raises:
        ArgumentTypeError: It is another text.
    """
    if text not in ("auto", "true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, true or false")
    return text


def parse_resources(text: str) -> dict[str, dict[str, str]]:
    """Return requests and limits.

    Raises:
        ArgumentTypeError: The text is not JSON with requests and limits.
    """
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from error
    if not isinstance(value, dict) or not set(value) <= {"requests", "limits"}:
        raise argparse.ArgumentTypeError(f"{text!r} has other keys than requests and limits")
    for part in value.values():
        if not isinstance(part, dict):
            raise argparse.ArgumentTypeError(f"{text!r} is not a map of resources")
        for name, amount in part.items():
            if not re.fullmatch(formats.QUANTITY, str(amount)):
                raise argparse.ArgumentTypeError(f"{name}: {amount!r} is not a quantity such as 256Mi")
    return {key: {name: str(amount) for name, amount in part.items()} for key, part in value.items()}
