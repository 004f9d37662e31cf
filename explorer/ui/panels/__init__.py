"""The panels of the app. Each has a ``box`` to place and a ``render`` that takes a snapshot."""
