"""One file per runtime; see ``explorer.runtime.backend``."""
