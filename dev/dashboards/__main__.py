"""`python -m dashboards`: write the ConfigMaps of all dashboards."""

from __future__ import annotations

from dashboards.files import FILE, text


def main() -> None:
    """Write the file."""
    FILE.write_text(text())


if __name__ == "__main__":
    main()
