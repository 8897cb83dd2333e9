"""What `config` of the custom resource may hold."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prefix: str = "echo: "

    # Written by KubeFoundry: the address of the service, and the file with the token for it.
    url: str
    token_file: str = ""
