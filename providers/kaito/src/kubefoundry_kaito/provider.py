"""The KAITO provider: its registration, and its functions bound to the settings."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from importlib.metadata import version
from typing import Final

from kubefoundry_kaito import operator, preset
from kubefoundry_kaito.observe import observe
from kubefoundry_kaito.overrides import Overrides
from kubefoundry_kaito.probe import WORKSPACES, probe
from kubefoundry_kaito.read_back import read_back
from kubefoundry_kaito.render import render
from kubefoundry_kaito.settings import PROVISIONING, Settings, add_arguments, from_arguments
from kubefoundry_kaito.supports import ENGINES, supports
from kubefoundry_sdk import (
    Capabilities,
    Document,
    Operator,
    Pods,
    Provider,
    Rendered,
    SelectionRule,
    from_flags,
)

NAME: Final = "kaito"

CAPABILITIES: Final = Capabilities(
    engines=ENGINES, serving_modes=("aggregated",), cpu_support=True, gpu_support=True
)

SELECTION_RULES: Final = (
    SelectionRule(
        "(!has(spec.resources.gpu) || spec.resources.gpu.count == 0) && spec.serving.mode != 'disaggregated'",
        priority=100,
    ),
    SelectionRule(
        "spec.engine.type == 'llamacpp'",
        priority=100,
    ),
)
"""contract §5. The selector composes the reasons, because only the selector knows the other registered providers.

A disaggregated spec has no `resources.gpu` and is not a CPU model (contract §5).
"""

PODS: Final = Pods(
    "kaito.sh/workspace",
    lambda workspace: [workspace["metadata"]["name"]],
    makers=lambda workspace: [workspace["metadata"]["name"]],
    creation_events="involvedObject.kind=StatefulSet,reason=FailedCreate",
)
"""The label that KAITO's Services select, for templates and presets alike (seen on 0.12; sources §1.2)."""


CONFIG: Final = Document("ConfigMap", ("data", preset.CONFIG_KEY), preset.as_yaml)

CONFIG_REFERENCE: Final = ("inference.config",)
"""KAITO's webhook judges a Workspace by the current content of the ConfigMap that it names (seen on 0.12)."""

SECTIONS: Final = ("resource", "inference")
"""KAITO refuses changes of `resource` and `inference.preset`. It stores those of `inference.template` without rolling
them out, and reads the ConfigMap only when its pod starts (sources §1.3, §1.4)."""


def recreate(old: Rendered, new: Rendered) -> str | None:
    """Return why KAITO cannot make the change: a running Workspace takes only changes of labels and annotations."""
    changed = [section for section in SECTIONS if old.main.get(section) != new.main.get(section)]
    if [helper.get("data") for helper in old.helpers] != [helper.get("data") for helper in new.helpers]:
        changed.append("the inference config")
    return f"KAITO does not roll out a change of {', '.join(changed)}" if changed else None


def build(arguments: Namespace) -> Provider:
    """Return the provider for parsed flags. Raise ValueError for contradictory flags."""
    return provider(from_arguments(arguments))


def with_defaults() -> Provider:
    """Return the provider without flags: the command line renders and explains with it."""
    return provider(Settings())


def provider(settings: Settings) -> Provider:
    """Return the provider for the administrator's settings."""
    return Provider(
        name=NAME,
        title="KAITO",
        version=version("kubefoundry-provider-kaito"),
        contract="0.3",
        documentation="https://kaito-project.github.io/kaito/docs/",
        capabilities=CAPABILITIES,
        upstream=WORKSPACES,
        probe=probe,
        supports=partial(supports, settings=settings),
        render=partial(render, settings=settings),
        observe=observe,
        selection_rules=SELECTION_RULES,
        overrides=Overrides,
        recreate=recreate,
        edits_recreate=True,
        documents=(CONFIG,),
        named_by_content=CONFIG_REFERENCE,
        helper_kinds=("ConfigMap",),
        operator=Operator(
            operator.DEPLOYMENT,
            (operator.NAMESPACE,),
            operator.read,
            stated={PROVISIONING: settings.provisioning} if settings.provisioning else {},
        ),
        pods=PODS,
        read_back=read_back,
        from_flags=partial(from_flags, NAME, build, add_arguments),
    )
