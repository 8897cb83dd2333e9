"""What `config` of the custom resource may hold."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prefix: str = "echo: "
