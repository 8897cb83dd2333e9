"""An operator in kopf that looks after Widgets, and the provider of Widgets inside it.

The handler stands for an operator that you have. The last line is all that KubeFoundry needs; login and settings are
there so that the conformance kit can run it, with times of its own.

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
    """What an operator does with a Widget."""
    logger.info("Widget %s/%s: %s, %s", namespace, name, type or "listed", status.get("state", "new"))


kubefoundry_sdk.kopf.serve(
    lambda: provider({"vllm": "example.com/vllm:1"}), settings=Settings.from_environment()
)
