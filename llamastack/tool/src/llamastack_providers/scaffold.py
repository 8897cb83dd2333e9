"""Implements `init`: writes the sources of a new provider that the server can start.

The providers in examples/llamastack/ are its output.
"""

from __future__ import annotations

import importlib.resources
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_WORKING: Final = {"inference": "remote", "safety": "inline"}
"""APIs with a working template, and its kind of provider."""

SKELETONS: Final = {
    "responses": (
        "Responses",
        "create_openai_response get_openai_response list_openai_responses delete_openai_response "
        "list_openai_response_input_items cancel_openai_response",
    ),
    "batches": ("Batches", "create_batch retrieve_batch list_batches cancel_batch"),
    "vector_io": (
        "VectorIO",
        "register_vector_store unregister_vector_store insert_chunks query_chunks openai_create_vector_store "
        "openai_list_vector_stores openai_retrieve_vector_store openai_update_vector_store "
        "openai_delete_vector_store openai_search_vector_store openai_attach_file_to_vector_store "
        "openai_list_files_in_vector_store openai_retrieve_vector_store_file "
        "openai_retrieve_vector_store_file_contents openai_update_vector_store_file "
        "openai_delete_vector_store_file openai_create_vector_store_file_batch "
        "openai_retrieve_vector_store_file_batch openai_list_files_in_vector_store_file_batch "
        "openai_cancel_vector_store_file_batch",
    ),
    "datasetio": ("DatasetIO", "register_dataset unregister_dataset iterrows append_rows"),
    "scoring": ("Scoring", "list_scoring_functions register_scoring_function score score_batch"),
    "eval": ("Eval", "register_benchmark run_eval evaluate_rows job_status job_result job_cancel"),
    "tool_runtime": ("ToolRuntime", "list_runtime_tools invoke_tool"),
    "files": (
        "Files",
        "openai_upload_file openai_list_files openai_retrieve_file openai_retrieve_file_content "
        "openai_delete_file",
    ),
    "file_processors": ("FileProcessors", "process_file"),
}
"""All other APIs that providers of llama-stack 0.7.3 may implement (core/distribution.py, providable_apis): class of
llama_stack_api, and the functions that the server calls."""

_ASKED_AT_START: Final = {"list_scoring_functions": "return []"}
_SERVED: Final = "inference"
"""The API with a template that calls a service."""

APIS: Final = (*_WORKING, *SKELETONS)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def main(folder: Path, api: str, name: str, *, service: bool = False) -> int:
    """Write the sources. Return the exit code."""
    if service and api != _SERVED:
        print(f"--service writes a provider only with --api {_SERVED}", file=sys.stderr)
        return 2
    if not _NAME.fullmatch(name):
        print(
            f"{name!r} cannot be a name: use lower-case words with hyphens, such as acme-echo",
            file=sys.stderr,
        )
        return 2
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder} is not empty: nothing was written", file=sys.stderr)
        return 1
    for path, text in sources(api, name, service=service):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    return 0


def sources(api: str, name: str, *, service: bool = False) -> Iterator[tuple[str, str]]:
    """Return every file of the new provider: path and content.

    Args:
        api: llama-stack's name of the API.
        name: The name of the package.
        service: Whether the provider calls a service, which is among the files.
    """
    package = name.replace("-", "_")
    values = {"NAME": name, "PACKAGE": package, "API": api, "KIND": _WORKING.get(api, "inline")}
    if api in SKELETONS:
        values["PROTOCOL"], functions = SKELETONS[api]
        values["FUNCTIONS"] = "".join(map(_function, functions.split()))
    templates = importlib.resources.files("llamastack_providers") / "templates"
    parts = [("common", ""), (api if api in _WORKING else "skeleton", f"src/{package}/")]
    if service:
        parts += [("service", ""), ("service_package", f"src/{package}/")]
    # Files of later parts replace those of earlier ones.
    chosen = {
        f"{below}{template.name.removesuffix('.txt')}": template
        for part, below in parts
        for template in sorted(_files(templates / part), key=lambda file: file.name)
    }
    for path, template in chosen.items():
        text = template.read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        yield path, text


def _function(name: str) -> str:
    body = _ASKED_AT_START.get(name, f'raise NotImplementedError("{name} is not written yet")')
    return f"\n    async def {name}(self, *args: Any, **named: Any) -> Any:\n        {body}\n"


def _files(folder: Traversable) -> Iterator[Traversable]:
    return (path for path in folder.iterdir() if path.is_file())
