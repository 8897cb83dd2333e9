"""The process `kubefoundry-core`: admission webhooks, their certificates, and the controller."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from kubefoundry_core.admission.application import application
from kubefoundry_core.admission.listener import Listener, server_context
from kubefoundry_core.certificate_keeper import CertificateKeeper
from kubefoundry_core.controller import Controller
from kubefoundry_core.conversion import CONVERSIONS, Conversions
from kubefoundry_core.metrics import Deployments
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.listening import bind
from kubefoundry_sdk._runtime.process import Process, SetUp, run

PROGRAM = "kubefoundry-core"

LONGEST_DELAY: Final = 2.0
"""Seconds of `--shutdown-delay` at most. The reviews in flight then have 2 s, and the process has 5 (contract §6)."""


def main() -> None:
    """Run the console script."""
    sys.exit(run(PROGRAM, *prepared()))


def prepared(
    arguments: Sequence[str] | None = None, conversions: Conversions = CONVERSIONS
) -> tuple[argparse.Namespace, SetUp]:
    """Open the port of the webhooks, and return the flags and the set-up of the process.

    If a flag is invalid or the port is taken, exit with a one-line message.

    Args:
        arguments: The arguments; None for those of the process.
        conversions: The fields of each version of the API.
    """
    parser = options.parser(
        PROGRAM, "Admission webhooks and provider-independent status of ModelDeployments."
    )
    options.flag(parser, "--webhook-port", "port for the admission webhooks", default=9443, read=int)
    options.flag(
        parser,
        "--webhook-host",
        "additional DNS names and addresses for the webhook's certificate, separated by commas",
        default="",
    )
    options.flag(
        parser,
        "--webhook-secret",
        "existing Secret with the webhooks' ca.crt, tls.crt and tls.key, maintained by cert-manager for example; "
        "without it, core creates and renews its own",
        default="",
    )
    options.flag(
        parser,
        "--webhook-client-ca",
        "PEM file of the CA that signs the API server's client certificate; without it, anyone may call the webhooks",
        default="",
    )
    options.flag(
        parser,
        "--shutdown-delay",
        "time after SIGTERM in which the webhooks go on answering, because nodes route reviews to a pod until they "
        "learn that it is terminating: at most 2s",
        default="2s",
        read=_shutdown_delay,
    )
    options.switch(
        parser,
        "--record-creator",
        "record who creates a ModelDeployment, for manifests/provider-policy before Kubernetes 1.36: true or false",
    )
    options.switch(
        parser,
        "--per-object-metrics",
        "export two metrics with one series per ModelDeployment: true or false",
    )
    options.finalizer_timeout(parser)
    options.heartbeat_timeout(parser)
    parsed = parser.parse_args(arguments)
    try:
        # Before any other set-up: if a port is taken, the start cannot succeed.
        bound = bind(parsed.webhook_port)
    except (OSError, OverflowError) as error:
        parser.error(f"port {parsed.webhook_port} of the webhooks cannot be opened: {error}")
    try:
        server_context(parsed.webhook_client_ca)
    except OSError as error:
        parser.error(f"--webhook-client-ca {parsed.webhook_client_ca} cannot be read: {error}")
    return parsed, lambda process: set_up(process, bound, conversions)


def _shutdown_delay(text: str) -> float:
    seconds = options.duration(text)
    if seconds > LONGEST_DELAY:
        raise argparse.ArgumentTypeError(f"'{text}' is longer than {LONGEST_DELAY:g} s")
    return seconds


def set_up(process: Process, bound: socket.socket, conversions: Conversions) -> None:
    """Connect the webhooks, their certificates and the controller."""
    controller = Controller(process)
    process.at_end(bound.close)
    process.export(
        Deployments(controller.counted, controller.registered, per_object=process.options.per_object_metrics)
    )
    answers = application(
        controller.registered,
        controller.left,
        controller.models,
        record_creator=process.options.record_creator,
        conversions=conversions,
    )
    listener = Listener(
        answers,
        bound,
        partial(server_context, process.options.webhook_client_ca),
        process.options.shutdown_delay,
    )
    hosts = [host for host in process.options.webhook_host.split(",") if host]
    CertificateKeeper(process, listener, hosts, process.options.webhook_secret)
    process.background("webhooks", listener.closed_at_end)
