"""This job beside the same loop on other stream processors: `python -m benchmarks.peers` writes docs/peers.md."""
