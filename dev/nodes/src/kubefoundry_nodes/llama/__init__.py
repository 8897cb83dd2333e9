"""A real llama-server with a tiny model, as an image for the pods' node."""
