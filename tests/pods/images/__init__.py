"""The images that pods of these tests run: a llama-stack distribution, providers, a model server."""
