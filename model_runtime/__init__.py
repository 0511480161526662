"""Audio in, events out: the speech engine over numpy and TFLite. Knows no Beam, no Kafka, no gRPC."""
