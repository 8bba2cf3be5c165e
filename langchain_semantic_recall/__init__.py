"""Semantic recall for LangChain."""
