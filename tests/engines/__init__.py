"""The options that vLLM's and SGLang's servers take, read from the sources of their wheels and kept here."""
