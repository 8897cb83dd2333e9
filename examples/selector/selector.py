"""A custom selector in place of kubefoundry-selector: llama.cpp models go to kaito, all others to dynamo."""

from __future__ import annotations

import sys

from kubefoundry_sdk import Object
from kubefoundry_sdk.selector import (
    MODEL_DEPLOYMENTS,
    PROVIDER_SELECTED,
    SELECTOR_LEASE,
    SELECTOR_MANAGER,
    VALIDATED,
    Key,
    Process,
    argument_parser,
    condition,
    is_true,
    run_process,
    write_status,
)

PROGRAM = "kubefoundry-selector"


def selection(spec: Object, generation: int) -> Object:
    """Return the status fields of the selector, none if the user names a provider, which core reports."""
    if (spec.get("provider") or {}).get("name"):
        return {}
    name = "kaito" if spec["engine"].get("type") == "llamacpp" else "dynamo"
    selected = condition(PROVIDER_SELECTED, True, "AutoSelected", f"Chose {name}", generation=generation)
    return {"provider": {"name": name, "selectedReason": f"house rule → {name}"}, "conditions": [selected]}


def set_up(running: Process) -> None:
    deployments = running.watch(MODEL_DEPLOYMENTS, managers=frozenset({SELECTOR_MANAGER}))

    async def select(key: Key) -> None:
        if (live := deployments.get(key)) is None:
            return
        generation = live["metadata"]["generation"]
        if is_true((live.get("status") or {}).get("conditions"), VALIDATED, generation=generation):
            fields = selection(live["spec"], generation)
            await write_status(
                running.client, deployments, MODEL_DEPLOYMENTS, live, fields, manager=SELECTOR_MANAGER
            )

    queue = running.queue("selector", select, of=deployments)
    deployments.subscribe(lambda key, obj: queue.add(key))
    running.always_hold(SELECTOR_LEASE)


if __name__ == "__main__":
    parser = argument_parser(PROGRAM, "Chooses providers by the rules of the house.")
    sys.exit(run_process(PROGRAM, parser.parse_args(), set_up))
