"""`python -m semantic_recall.cli`."""

from semantic_recall.cli import main

main()
