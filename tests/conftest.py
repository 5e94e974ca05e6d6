import os

from hypothesis import settings

# Kernels compile on their first call, so no deadline; CI repeats the same examples, people get new ones.
settings.register_profile("dpals", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("dpals")
