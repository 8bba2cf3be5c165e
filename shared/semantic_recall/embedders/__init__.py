"""Embedders: text to vectors, locally by default."""
