"""Importers: one file per export format."""
