import os

from hypothesis import HealthCheck, settings

# Kernels compile on their first call and machines are busy, so no test fails for being slow; CI repeats the same
# examples, people get new ones.
slow = [HealthCheck.too_slow]
settings.register_profile("dpals", deadline=None, suppress_health_check=slow, derandomize="CI" in os.environ)
settings.load_profile("dpals")
