"""Measurements of speed, as ratios within one run: `make benchmark` writes docs/speed.md."""
