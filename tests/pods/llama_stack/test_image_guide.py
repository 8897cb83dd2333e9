"""The image guide followed literally: its commands in its order, and a server with its providers."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.control_plane import ROOT
from kubefoundry_nodes.images import environment
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._cluster.client import Client
from pods.images import containerfile
from pods.llama_stack.distributions import server, stack, until_ready

pytestmark = pytest.mark.integration

GUIDE: Final = ROOT / "docs" / "llamastack" / "image-guide.md"
ENTRY: Final = "entry.yaml"
"""The file of the guide with the entry of a provider."""
OTHER: Final = ("make", "/lls-provider/")
"""First words of lines that are no steps: the demo, which has a test of its own, and the files of an image."""


@dataclass(frozen=True, slots=True)
class Guide:
    """Its commands, and its YAML with entries of providers."""

    commands: list[list[str]]
    entries: dict[str, Any]


def read() -> Guide:
    text = GUIDE.read_text()
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    commands = [shlex.split(line, comments=True) for line in outside_blocks(text, lines)]
    documents = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    return Guide([words for words in commands if not words[0].startswith(OTHER)], dict(entries(documents)))


def outside_blocks(text: str, lines: list[str]) -> Iterator[str]:
    """Yield the lines that are no part of a block of YAML."""
    blocks = "".join(re.findall(r"```.*?```", text, re.DOTALL))
    return (line for line in lines if line not in blocks)


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of providers in YAML, by id."""
    if isinstance(value, dict):
        if "providerId" in value:
            yield value["providerId"], value
        value = [*value.values()]
    for item in value if isinstance(value, list) else ():
        yield from entries(item)


def follow(words: list[str], folder: Path, work: Path) -> Image | None:
    """Run a command in the folder, with the programs of an image that has Python and pip. Return a built image.

    Raises:
        RuntimeError: The command failed.
    """
    match words:
        case ["python", *arguments]:
            # "in a checkout": the tool is built from it.
            subprocess.run([sys.executable, *arguments], cwd=folder, check=True)
        case ["podman", "build", "--tag", name, context]:
            return containerfile.build(name, folder / context, work / context)
        case _:
            machine = replace(containerfile.base("machine"), workdir="/work", env=containerfile.OFFLINE)
            environment.step(machine, words, {"/work": folder})
    return None


@pytest.mark.accept("L2-40")
async def test_guide_leads_to_server_with_its_providers(
    api: Client, node: Node, examples: None, namespace: str, tmp_path: Path
) -> None:
    guide = read()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ENTRY).write_text(yaml.safe_dump([guide.entries["my-shout"]]))

    made = [follow(words, folder, tmp_path / "layers") for words in guide.commands]
    for image in filter(None, made):
        node.add(image)
    providers = {"inference": [*guide.entries.values()]}
    await api.create(LLSD, stack("chat", namespace, externalProviders=providers), manager="user")
    await until_ready(api, "chat", namespace)

    live = await server(api, "chat", namespace)
    answers = [await live.chat(f"{name}/echo-1", "ping") for name in ("my-echo", "my-shout")]
    assert [image.name for image in made if image] == ["acme/echo:0.1.0", "acme/shout:0.1.0"]
    assert len([words for words in guide.commands if "lint" in words]) == 2
    assert [(answer.status, answer.body) for answer in answers] == [
        (200, "you said: ping"),
        (200, "echo: PING"),
    ]
