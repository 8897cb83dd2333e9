"""The images that the tests build."""

from __future__ import annotations

import os
from typing import Final

from images.components import components

ALL: Final = os.environ.get("KUBEFOUNDRY_TEST_IMAGES") == "all"
"""Whether to test the images of all components and architectures, as `make test-images` does in some minutes."""

COMPONENTS: Final = list(components()) if ALL else ["core"]
