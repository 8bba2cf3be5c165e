"""How fast it is and how much it finds: `speed.py` and `quality.py`."""
