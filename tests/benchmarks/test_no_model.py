"""NoModel: what it says depends on the samples alone, as with the engine."""

import zlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.peers.no_model import NoModel
from model_runtime import Final, Partial

AUDIO = np.random.default_rng(7).normal(0, 0.1, 70_000).astype(np.float32)


def test_its_texts_are_checksums_of_all_samples_so_far() -> None:
    events = NoModel().run([AUDIO])[0]
    ends = [12_800, 25_600, 38_400, 51_200, 64_000, 70_000]
    assert [event.text for event in events] == [f"{zlib.crc32(AUDIO[:end]):08x}" for end in ends]
    assert [
        (type(event), event.utterance, event.revision, event.start_samples, event.end_samples) for event in events
    ] == [
        *((Partial, 0, revision, 0, ends[revision]) for revision in range(4)),
        (Final, 0, 5, 0, 64_000),
        (Final, 1, 5, 64_000, 70_000),
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 70_000), max_size=6))
def test_pieces_and_frozen_states_leave_no_trace(cuts: list[int]) -> None:
    engine = NoModel()
    state, said = engine.start(), []
    for piece in np.split(AUDIO, sorted(cuts)):
        state, events = engine.step(engine.thaw(engine.freeze(state)), piece)
        said += events
    assert said + engine.finish(state)[1] == engine.run([AUDIO])[0]
