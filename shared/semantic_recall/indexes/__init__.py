"""Vector indexes: derived, rebuildable."""
