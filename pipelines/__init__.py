"""Jobs: configuration, build(pipeline, config) and main(argv)."""
