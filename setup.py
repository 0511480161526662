"""Lets Beam's --setup_file ship the packages to workers; everything is declared in pyproject.toml."""

from setuptools import setup

setup()
