"""`python -m kubefoundry_simulators --kubeconfig FILE`: simulate the upstream operators until stopped."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path
from typing import Final

from kubefoundry_simulators import dynamo, kaito, kuberay
from kubefoundry_simulators.cluster import connect
from kubefoundry_simulators.simulation import Settings, simulate
from kubefoundry_simulators.webhooks import Webhooks, serve

OPERATORS: Final = {
    operator.name: operator for operator in (kaito.OPERATOR, dynamo.OPERATOR, kuberay.OPERATOR)
}
DEFAULT_SPEED: Final = 100.0


def main() -> None:
    """Read the arguments and run; ends cleanly on SIGTERM and SIGINT."""
    parser = argparse.ArgumentParser(
        prog="kubefoundry-simulators",
        description="Simulated KAITO, Dynamo and KubeRay operators: they behave as recorded and serve nothing.",
    )
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--only", default=",".join(OPERATORS), help="which ones, with commas")
    parser.add_argument(
        "--speed", type=float, default=DEFAULT_SPEED, help="recorded seconds that pass in one (default 100)"
    )
    parser.add_argument(
        "--webhooks",
        action="store_true",
        help="serve their admission and conversion webhooks on loopback, and register them",
    )
    parser.add_argument(
        "--no-services",
        action="store_true",
        help="make no Services and tell nothing of what runs (for benchmarks)",
    )
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    unknown = [name for name in names if name not in OPERATORS]
    if unknown:
        parser.error(f"--only: {', '.join(unknown)} is not one of {', '.join(OPERATORS)}")
    if arguments.speed <= 0:
        parser.error("--speed must be above 0")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings(speed=arguments.speed, services=not arguments.no_services)
    asyncio.run(_run(arguments.kubeconfig, names, settings, arguments.webhooks))


async def _run(kubeconfig: Path, names: list[str], settings: Settings, webhooks: bool) -> None:
    loop = asyncio.get_running_loop()
    playing = asyncio.ensure_future(_play(kubeconfig, names, settings, webhooks))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await playing
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("simulated operators stopped")


async def _play(kubeconfig: Path, names: list[str], settings: Settings, webhooks: bool) -> None:
    cluster = await connect(kubeconfig)
    served: Webhooks | None = None
    try:
        served = await serve(cluster) if webhooks else None
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                installed = served.register if served else _nothing
                tasks.create_task(simulate(cluster, OPERATORS[name], settings, installed))
    finally:
        if served:
            await served.close()
        await cluster.close()


async def _nothing(crd: object) -> None:
    """Without webhooks there is nothing to register."""


if __name__ == "__main__":
    main()
