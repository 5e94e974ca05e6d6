"""PooledDPALS, our own method, for ratings and for implicit feedback."""
