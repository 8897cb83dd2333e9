"""A provider in any language: its functions are a program that reads and writes lines of JSON (docs/functions.md)."""
