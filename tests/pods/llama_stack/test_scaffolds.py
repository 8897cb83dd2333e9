"""What `init` writes, for each API that llama-stack 0.7.3 has providers for, with the real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llamastack_providers import apis, scaffold
from llamastack_providers.layout import SPEC_FILE
from pods.images import provider
from pods.llama_stack.chain import Chain
from pods.llama_stack.conftest import Release

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_every_api_of_the_server_has_a_template(release: Release) -> None:
    assert release.apis == set(scaffold.APIS)


def test_server_starts_with_all_of_them_at_once(chain: Callable[[], Chain], tmp_path: Path) -> None:
    pod = chain()
    names = {api: f"own-{api.replace('_', '-')}" for api in scaffold.APIS}
    sources = [provider.scaffolded(api, name) for api, name in names.items()]
    built = provider.wheels(sources, tmp_path)
    for (api, name), files, wheel in zip(names.items(), sources, built, strict=True):
        image = provider.image(f"example.com/{name}:1", tmp_path / name, files[SPEC_FILE], [wheel])
        assert pod.install(image, name, api=apis.section(api)).code == 0
    assert pod.merge().code == 0
    first = pod.preflight(HOME="/tmp")
    assert first.code == 0, first.log

    # again in the same pod, a server has ended in between: now the server is started on trial
    ended = pod.preflight(HOME="/tmp")

    assert ended.code == 0, ended.log
    assert f"Preflight passed; external providers: {len(scaffold.APIS)}" in ended.log
    assert "trying to start it with all providers" in ended.log
    assert "The trial start failed" not in ended.log, ended.log
