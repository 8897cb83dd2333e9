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
    """Read the arguments, and simulate until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(
        prog="kubefoundry-simulators",
        description="Simulated KAITO, Dynamo and KubeRay operators: they behave as recorded and serve nothing.",
    )
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument(
        "--only", default=",".join(OPERATORS), help="names of the operators, separated by commas"
    )
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
        help="create no Services, and record no workloads in annotations (for benchmarks)",
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
    """Simulate until a signal. A signal cancels the simulation, so that it removes its webhooks."""
    loop = asyncio.get_running_loop()
    simulation = asyncio.ensure_future(_simulate_all(kubeconfig, names, settings, webhooks))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, simulation.cancel)
    try:
        await simulation
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("simulated operators stopped")


async def _simulate_all(kubeconfig: Path, names: list[str], settings: Settings, webhooks: bool) -> None:
    cluster = await connect(kubeconfig)
    server: Webhooks | None = None
    try:
        server = await serve(cluster) if webhooks else None
        on_crd = server.register if server else None
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(simulate(cluster, OPERATORS[name], settings, on_crd))
    finally:
        if server:
            await server.close()
        await cluster.close()


if __name__ == "__main__":
    main()
