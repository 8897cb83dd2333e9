"""`python -m charts`: write every generated file of charts/, and docs/helm-values.md."""

from __future__ import annotations

from charts.files import files


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
