"""An operator in kopf for Widgets, with the provider of Widgets inside it.

The handler stands for your operator. KubeFoundry needs only the last line. Login and settings let the conformance kit
run the operator with shorter time-outs.

    kopf run --standalone -A operator_with_provider.py
"""

from __future__ import annotations

from typing import Any

import kopf

import kubefoundry_sdk.kopf
from kubefoundry_sdk import Settings
from kubefoundry_widgets.provider import provider

kopf.on.login()(kubefoundry_sdk.kopf.login)


@kopf.on.event("example.com", "v1", "widgets")
def seen(
    name: str, namespace: str | None, status: Any, type: str | None, logger: kopf.Logger, **_: Any
) -> None:
    """Handle a Widget, as your operator does."""
    logger.info("Widget %s/%s: %s, %s", namespace, name, type or "listed", status.get("state", "new"))


kubefoundry_sdk.kopf.serve(
    lambda: provider({"vllm": "example.com/vllm:1"}), settings=Settings.from_environment()
)
