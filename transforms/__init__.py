"""Beam transforms: the same inference twice, Kafka source and sink, manifests and result files."""
