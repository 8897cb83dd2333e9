"""The provider itself."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acme_portable.names import InferenceProvider, Model, ModelType, OpenAIChatCompletion

if TYPE_CHECKING:
    from acme_portable.config import Config

MODEL = "echo-1"
NOT_OFFERED = (
    "chat_completion",
    "completion",
    "embeddings",
    "openai_completion",
    "openai_embeddings",
)


class Adapter(InferenceProvider):
    def __init__(self, config: Config) -> None:
        self.config = config

    async def initialize(self) -> None: ...

    async def shutdown(self) -> None: ...

    async def register_model(self, model: Model) -> Model:
        return model

    async def unregister_model(self, model_id: str) -> None: ...

    async def should_refresh_models(self) -> bool:
        return False

    async def list_models(self) -> list[Model]:
        own: str = self.__provider_id__  # set by llama-stack
        model = Model(identifier=MODEL, provider_resource_id=MODEL, provider_id=own, model_type=ModelType.llm)
        return [model]

    async def openai_chat_completion(self, *given: Any, **named: Any) -> OpenAIChatCompletion:
        # From 0.3 on, one value has all parameters. Before, they are arguments.
        request = vars(given[0] if given else named.get("params")) if given or "params" in named else named
        answer = f"{self.config.prefix}{request['messages'][-1].content}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
        return OpenAIChatCompletion.model_validate(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": request["model"],
                "choices": [choice],
            }
        )


def refused(name: str) -> Callable[..., Any]:
    """Return a function that raises NotImplementedError."""

    async def refuse(self: Adapter, *given: Any, **named: Any) -> Any:
        raise NotImplementedError(f"{name} is not offered, chat completions are")

    return refuse


def copy_signatures() -> None:
    """Give the adapter's functions the signatures of the installed release.

    Releases before 0.4 refuse a provider whose functions have other arguments, or that lacks a function.
    """
    for name in NOT_OFFERED:
        if hasattr(InferenceProvider, name):
            setattr(Adapter, name, refused(name))
    for name in (*NOT_OFFERED, "openai_chat_completion"):
        if function := getattr(InferenceProvider, name, None):
            vars(Adapter)[name].__signature__ = inspect.signature(function)


copy_signatures()
