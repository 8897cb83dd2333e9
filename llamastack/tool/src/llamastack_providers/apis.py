"""Maps the sections of `spec.server.externalProviders` to their names in llama-stack."""

from __future__ import annotations

from typing import Final

SECTIONS: Final = {
    "inference": "inference",
    "safety": "safety",
    "agents": "agents",
    "vectorIo": "vector_io",
    "datasetIo": "datasetio",
    "scoring": "scoring",
    "eval": "eval",
    "toolRuntime": "tool_runtime",
    "postTraining": "post_training",
    "responses": "responses",
    "batches": "batches",
    "files": "files",
    "fileProcessors": "file_processors",
}
"""Key of the custom resource -> section of run.yaml, in the order of installation: those of sources §5.2 "CRD
Structure", followed by later APIs of llama-stack (`providable_apis`, 0.7.3)."""

_SECTION_OF: Final = {name: key for key, name in SECTIONS.items()}


def run_name(api: str) -> str | None:
    """Return llama-stack's name of an API given by either name, None for an unknown one."""
    return SECTIONS.get(api) or (api if api in _SECTION_OF else None)


def section(api: str) -> str:
    """Return the custom resource's key of an API given by either name. An unknown name is returned unchanged."""
    return _SECTION_OF.get(api, api)
