"""The provider itself, which leaves the work to its service."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from llama_stack_api import InferenceProvider, Model, ModelType, OpenAIChatCompletion

from acme_shout.client import Client

if TYPE_CHECKING:
    from acme_shout.config import Config

MODEL = "echo-1"


class Adapter(InferenceProvider):
    def __init__(self, config: Config) -> None:
        self.config = config
        # No request here: the server must start while the service restarts.
        self.client = Client("acme-shout", config.url, config.token_file)

    async def initialize(self) -> None: ...

    async def shutdown(self) -> None:
        await self.client.close()

    async def register_model(self, model: Model) -> Model:
        return model

    async def unregister_model(self, model_id: str) -> None: ...

    async def should_refresh_models(self) -> bool:
        return False

    async def list_models(self) -> list[Model]:
        own: str = self.__provider_id__  # set by llama-stack
        model = Model(identifier=MODEL, provider_resource_id=MODEL, provider_id=own, model_type=ModelType.llm)
        return [model]

    async def openai_chat_completion(self, params: Any) -> OpenAIChatCompletion:
        said = await self.client.post("/say", {"text": params.messages[-1].content})
        answer = f"{self.config.prefix}{said['text']}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
        return OpenAIChatCompletion.model_validate(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": params.model,
                "choices": [choice],
            }
        )

    async def openai_completion(self, params: Any) -> Any:
        raise NotImplementedError("completions are not offered, chat completions are")

    async def openai_embeddings(self, params: Any) -> Any:
        raise NotImplementedError("embeddings are not offered")
