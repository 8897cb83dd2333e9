"""A provider for LLMInferenceService of KServe."""
