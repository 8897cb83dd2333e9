"""The names that a provider imports, from wherever the installed release has them."""

try:
    from ogx_api import Api, InferenceProvider, Model, ModelType, OpenAIChatCompletion, RemoteProviderSpec
except ImportError:
    try:
        # llama-stack from 0.4 on
        from llama_stack_api import (
            Api,
            InferenceProvider,
            Model,
            ModelType,
            OpenAIChatCompletion,
            RemoteProviderSpec,
        )
    except ImportError:
        from llama_stack.apis.inference import InferenceProvider, OpenAIChatCompletion
        from llama_stack.apis.models import Model, ModelType
        from llama_stack.providers.datatypes import Api, RemoteProviderSpec

__all__ = ["Api", "InferenceProvider", "Model", "ModelType", "OpenAIChatCompletion", "RemoteProviderSpec"]
