"""The page's server in a process of its own, and browsers that are signed in to it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, expect

from kubefoundry_local.child_processes import Process
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.ports import free_port
from support.preloaded.client import fork
from support.waiting import SECONDS

# Playwright's own five seconds are as long as the page waits between two attempts to reach its server.
expect.set_options(timeout=SECONDS * 1000)


ERRORS: Final = 2
"""The file of this process's own errors, which take those of the servers."""


@dataclass(slots=True)
class PageServer:
    """link: lets one browser in."""

    process: Process
    link: str

    @property
    def base(self) -> str:
        return self.link.split("/?")[0]

    @property
    def port(self) -> int:
        return int(self.base.rsplit(":", 1)[1])

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def kill(self) -> None:
        """SIGKILL: a crash."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)


@asynccontextmanager
async def page_server(
    plane: ControlPlane, namespace: str, *flags: str, port: int = 0
) -> AsyncIterator[PageServer]:
    """`kubefoundry start` as administrator."""
    where = ["--kubeconfig", str(plane.kubeconfig), "-n", namespace, "--port", str(port)]
    async with _started(["kubefoundry", "start", *where, *flags], os.environ) as (process, said):
        line = await asyncio.wait_for(said.readline(), SECONDS)
        yield PageServer(process, line.decode().strip())


@asynccontextmanager
async def page_in_cluster(environment: Mapping[str, str], *flags: str) -> AsyncIterator[str]:
    """The program of the Deployment; its address."""
    port = free_port()
    command = ["kubefoundry-dashboard", "--address", "127.0.0.1", "--port", str(port), *flags]
    async with _started(command, environment) as (process, _):
        async with asyncio.timeout(SECONDS):
            while process.poll() is None:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield f"http://localhost:{port}"


@asynccontextmanager
async def _started(
    command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[tuple[Process, asyncio.StreamReader]]:
    """The program with its libraries preloaded, and what it prints; it ends with the block."""
    said = asyncio.StreamReader()
    process, read = _forked(command, environment)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(said), os.fdopen(read, "rb")
    )
    try:
        yield process, said
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def _forked(command: Sequence[str], environment: Mapping[str, str]) -> tuple[Process, int]:
    """The process, and the end of a pipe that has what it prints."""
    program = str(Path(sys.executable).with_name(command[0]))
    read, write = os.pipe()
    try:
        with Path(os.devnull).open("rb") as nothing:
            return fork([program, *command[1:]], environment, [nothing.fileno(), write, ERRORS]), read
    finally:
        os.close(write)


@dataclass(slots=True)
class Tab:
    """A page in a browser. wrong: what the browser complained about, of the Content-Security-Policy or a script."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"a dialog: {dialog.message}"))
        self.page.on("console", lambda reported: self._reported(reported.text))

    async def sign_in(self, server: PageServer) -> None:
        """Uses the link up, and waits until the browser has been sent on: that interrupts another navigation."""
        await self.page.goto(server.link)
        await self.page.wait_for_url(f"{server.base}/")

    def _reported(self, text: str) -> None:
        if "Content Security Policy" in text or "Content-Security-Policy" in text:
            self.wrong.append(text)


@asynccontextmanager
async def tab(browser: Browser, server: PageServer | None = None, **how: Any) -> AsyncIterator[Tab]:
    """A browser of its own, signed in where a server is given, whose link is used up by it."""
    context = await browser.new_context(**how)
    context.set_default_timeout(SECONDS * 1000)
    try:
        made = Tab(await context.new_page())
        if server is not None:
            await made.sign_in(server)
        yield made
    finally:
        await context.close()
