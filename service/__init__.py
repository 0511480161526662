"""The front door and its tools: producing audio to Kafka, tailing results. Imports no Beam."""
