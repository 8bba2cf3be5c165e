"""Suites of tests for your own message store, vector index or embedder."""
