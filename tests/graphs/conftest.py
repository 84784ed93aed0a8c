"""Property tests run without deadlines: a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("graphs", deadline=None)
settings.load_profile("graphs")
