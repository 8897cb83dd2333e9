"""A provider for LeaderWorkerSets: vLLM and SGLang over several nodes, without Ray."""
