"""Measure how long Ready is wrong after each kind of edit of a model, for each provider."""
