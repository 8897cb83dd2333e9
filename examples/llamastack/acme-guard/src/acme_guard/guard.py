"""The provider itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_stack_api import (
    ModerationObject,
    ModerationObjectResults,
    RunModerationRequest,
    RunShieldRequest,
    RunShieldResponse,
    Safety,
    SafetyViolation,
    Shield,
    ViolationLevel,
)

if TYPE_CHECKING:
    from acme_guard.config import Config


class Guard(Safety):
    def __init__(self, config: Config) -> None:
        self.deny = [word.lower() for word in config.deny]

    async def initialize(self) -> None: ...

    async def shutdown(self) -> None: ...

    async def register_shield(self, shield: Shield) -> None: ...

    async def unregister_shield(self, identifier: str) -> None: ...

    async def run_shield(self, request: RunShieldRequest) -> RunShieldResponse:
        for message in request.messages:
            if word := self._denied(str(message.content)):
                violation = SafetyViolation(
                    violation_level=ViolationLevel.ERROR, user_message=f"'{word}' is not allowed here"
                )
                return RunShieldResponse(violation=violation)
        return RunShieldResponse()

    async def run_moderation(self, request: RunModerationRequest) -> ModerationObject:
        texts = [request.input] if isinstance(request.input, str) else request.input
        results = [ModerationObjectResults(flagged=self._denied(text) is not None) for text in texts]
        return ModerationObject(id="moderation-1", model=request.model or "words", results=results)

    def _denied(self, text: str) -> str | None:
        return next((word for word in self.deny if word in text.lower()), None)
