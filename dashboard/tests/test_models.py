"""The list of models: its order, the links of its counts, its ages, and texts with code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_dashboard.models import Filter, cells
from kubefoundry_dashboard.rendering import code
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.local_page import local_page


def model(name: str, created: str, provider: str, **ready: Any) -> dict[str, Any]:
    """Return a model whose newest generation is 2."""
    obj = model_deployment(name, "models", GPU, uid=name, generation=2, resourceVersion="1")
    obj["metadata"]["creationTimestamp"] = created
    condition = {"type": "Ready", "observedGeneration": 2, "message": "why", **ready}
    phase = (
        "Running" if ready["status"] == "True" else "Failed" if ready["reason"] == "Failed" else "Deploying"
    )
    obj["status"] = {"phase": phase, "provider": {"name": provider}, "conditions": [condition]}
    return obj


MODELS = [
    model("a-serves", "2026-11-01T00:00:00Z", "kuberay", status="True", reason="DeploymentReady"),
    model("b-starts", "2999-01-01T00:00:00Z", "dynamo", status="False", reason="Progressing"),
    model("c-failed", "2026-11-02T00:00:00Z", "kaito", status="False", reason="Failed"),
]


async def shown(folder: Path, path: str) -> str:
    """Return a page of a server that has MODELS and a registered provider."""
    answers = Answers()
    config = {"metadata": {"name": "acme", "uid": "u", "resourceVersion": "1"}, "spec": {}}
    answers.objects = {"modeldeployments": MODELS, "inferenceproviderconfigs": [config]}
    with serving(answers, folder) as kubeconfig:
        async with local_page(kubeconfig) as local, local.client.get(f"{local.base}{path}") as page:
            return await page.text()


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("", ["c-failed", "b-starts", "a-serves"]),
        ("?sort=name", ["a-serves", "b-starts", "c-failed"]),
        ("?sort=provider", ["b-starts", "c-failed", "a-serves"]),
        ("?sort=newest", ["b-starts", "c-failed", "a-serves"]),
        ("?sort=nonsense", ["c-failed", "b-starts", "a-serves"]),
    ],
)
async def test_list_begins_with_trouble_or_as_sorted(tmp_path: Path, query: str, order: list[str]) -> None:
    text = await shown(tmp_path, f"/{query}")

    assert re.findall(r'data-key="models/([^"]+)"', text) == order
    keys = re.findall(r'data-order="([^"]+)"', text)
    assert keys == sorted(keys), "the browser puts a changed row where the server does"


async def test_counts_link_to_their_models(tmp_path: Path) -> None:
    text = await shown(tmp_path, "/?sort=name&phase=Failed")

    links = re.findall(r'<a class="phase \w+" href="([^"]+)"><b data-count="(\w+)">(\d+)</b>', text)
    assert ("/?phase=Running&amp;sort=name", "Running", "0") in links
    assert ("/?phase=Failed&amp;sort=name", "Failed", "1") in links
    assert '<a href="/?sort=name"><b data-count="">1</b> of 3</a>' in text


async def test_ages_carry_their_times(tmp_path: Path) -> None:
    text = await shown(tmp_path, "/")

    assert re.findall(r'<time datetime="([^"]+)" data-age="">', text) == [
        "2026-11-02T00:00:00Z",
        "2999-01-01T00:00:00Z",
        "2026-11-01T00:00:00Z",
    ]


async def test_form_offers_the_registered_providers(tmp_path: Path) -> None:
    text = await shown(tmp_path, "/create")

    assert '<datalist id="providers"><option value="acme"></datalist>' in text
    assert re.search(r'<input id="spec\.provider\.name"[^>]* list="providers"', text)


@pytest.mark.parametrize(("path", "seconds"), [("/providers", "30"), ("/doctor?namespace=models", "60")])
async def test_page_without_a_stream_is_read_again(tmp_path: Path, path: str, seconds: str) -> None:
    assert f'id="live" data-stream="" data-again="{seconds}"' in await shown(tmp_path, path)


@pytest.mark.parametrize("value", ["0", "2026"])
def test_search_reads_cells_only(value: str) -> None:
    row = cells(MODELS[2])

    assert not Filter(text=value).matches({**row, "AGE": "", "REPLICAS": "", "MODEL": ""})


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("set `a.b` to <1>", "set <code>a.b</code> to &lt;1&gt;"),
        ("`<i>`", "<code>&lt;i&gt;</code>"),
        ("a ` alone", "a ` alone"),
        ("`a` and ` alone", "<code>a</code> and ` alone"),
        ("none", "none"),
    ],
)
def test_text_between_backticks_is_code(text: str, html: str) -> None:
    assert code(text) == html
