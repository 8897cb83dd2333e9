"""The contract between a provider and the runtime, and the runtime that runs a provider."""
