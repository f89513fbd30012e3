"""The verbs of ``redfirst``: a module each, with ``configure`` and ``execute``."""
