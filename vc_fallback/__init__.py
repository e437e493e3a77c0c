"""Many Ethereum beacon nodes held as one, for Python validator clients."""
