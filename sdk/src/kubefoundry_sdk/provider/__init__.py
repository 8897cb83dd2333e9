"""The contract between a provider and the runtime, and the runtime's side of it."""
