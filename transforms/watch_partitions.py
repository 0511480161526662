"""WatchPartitions: the partitions of a topic, those that it has and those that it is given later."""

import logging
import time
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.io.iobase import RestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

from model_runtime.errors import ConfigError
from transforms.endless_range import NO_END, EndlessRange, EndlessRanges
from transforms.kafka_config import KafkaConfig
from transforms.kafka_reader import reading_stopped
from transforms.kafka_topics import find_partitions, list_partitions
from transforms.stream_records import KafkaPartition

_logger = logging.getLogger(__name__)

_WATERMARK = ManualWatermarkEstimator.default_provider()


class WatchPartitions(beam.PTransform):
    """Takes topics; gives each of their partitions once, as KafkaPartition.

    A topic is looked at every KafkaConfig.partition_check_ms. What was not there at the first look of a job is `added`.
    """

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config

    def expand(self, topics: beam.PCollection) -> beam.PCollection:
        return topics | "Watch" >> beam.ParDo(_WatchFn(self._config)).with_output_types(KafkaPartition)


class _WatchFn(beam.DoFn, EndlessRanges):
    """Offset 0 of its restriction is the first look, offset n + 1 is partition n."""

    def __init__(self, config: KafkaConfig) -> None:
        super().__init__()
        self._config = config
        self._added = Metrics.counter("speech.read_kafka", "partitions_added")

    def initial_restriction(self, element: str) -> EndlessRange:
        return EndlessRange(0)

    @beam.DoFn.unbounded_per_element()
    def process(
        self,
        topic: str,
        tracker: RestrictionTracker = beam.DoFn.RestrictionParam(),  # noqa: B008
        watermark: ManualWatermarkEstimator = beam.DoFn.WatermarkEstimatorParam(_WATERMARK),  # noqa: B008
    ) -> Iterator[KafkaPartition | TimestampedValue]:
        """Looks once, then asks to be called again after KafkaConfig.partition_check_ms."""
        if reading_stopped():
            tracker.try_claim(NO_END)
            return
        before, looked_ms = watermark.current_watermark(), int(time.time() * 1000)
        start = tracker.current_restriction().start
        found = self._look(topic, first=start == 0)
        if start == 0 and not tracker.try_claim(0):
            return
        for number in found or []:
            if number + 1 < start:
                continue
            if not tracker.try_claim(number + 1):
                return
            partition = KafkaPartition(topic, number, added=start > 0)
            if start > 0:
                self._added.inc()
                _logger.info("%s[%d] has been added; it is read from its beginning", topic, number)
            yield partition if before is None else TimestampedValue(partition, before)
        if not self._config.partition_check_ms:
            tracker.try_claim(NO_END)
            return
        if found is not None:
            # What will be found next time did not exist at this look, so nothing in it is older, but for the disorder.
            watermark_ms = looked_ms - self._config.allowed_disorder_ms
            watermark.set_watermark(max(before or Timestamp(0), Timestamp(micros=watermark_ms * 1000)))
        tracker.defer_remainder(Duration(micros=self._config.partition_check_ms * 1000))

    def _look(self, topic: str, first: bool) -> list[int] | None:
        """Gives the partitions that there are; None if no broker has told.

        Raises:
            ConfigError: at the first look, no broker answers, or there is no such topic and nobody is to wait for it.
        """
        if first and self._config.on_missing_topic == "fail":
            return list_partitions(self._config, [topic])[topic]
        try:
            found = find_partitions(self._config, [topic])[topic]
        except ConfigError as error:
            if first:
                raise
            _logger.warning("%s; looked for new partitions of %s", error, topic)
            return None
        if first and not found:
            _logger.warning("there is no topic %s yet; it is read from its beginning once it is there", topic)
        return found
