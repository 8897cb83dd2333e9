"""The workflows of GitHub run the commands that the Makefile has, and no group of `make test` is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
WORKFLOW: Final = ROOT / ".github" / "workflows" / "ci.yaml"
GROUPS: Final = {"lint", "test-unit", "test-go", "test-integration", "test-upstream", "test-pods"}
"""The groups of `make test` as targets of their own."""


def _commands(job: dict[str, Any]) -> list[str]:
    """Return the shell commands of a job, one for each value of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    commands = [step["run"] for step in job["steps"] if "run" in step]
    return [
        command.replace(f"${{{{ matrix.{key} }}}}", value)
        for command in commands
        for key, values in (matrix or {"": [""]}).items()
        for value in values
    ]


def test_workflow_runs_each_group_of_the_tests() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]

    targets = {
        target
        for job in jobs.values()
        for command in _commands(job)
        for target in re.findall(r"make (\S+)", command)
    }

    assert targets == GROUPS


def test_workflow_targets_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    missing = {target for target in GROUPS if not re.search(rf"^{target}:", makefile, re.MULTILINE)}

    assert missing == set()


def test_dependabot_watches_each_go_module() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    modules = {f"/{file.parent.relative_to(ROOT)}" for file in (ROOT / "dev" / "devcluster").rglob("go.mod")}

    watched = next(update for update in updates if update["package-ecosystem"] == "gomod")["directories"]

    assert {
        module for module in modules if not any(Path(module).match(pattern) for pattern in watched)
    } == set()
