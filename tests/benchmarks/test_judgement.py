"""What was said against what must be said."""

import numpy as np
import pytest

from benchmarks.peers.expected import Expected, Script, script
from benchmarks.peers.judgement import Said, judge
from benchmarks.peers.no_model import NoModel
from benchmarks.peers.play import Play, cast


@pytest.fixture
def plays() -> list[Play]:
    """Two sessions of 1.25 s: a partial with the eighth chunk, a final with the last and shorter one."""
    return cast("live", [script(NoModel(), np.zeros(20_000, np.float32))], 2)


def said(play: Play, stamp_ms: float) -> list[tuple[Said, float]]:
    """All that a session must say, at one time."""
    results = [
        Said(play.session, *name, expected.text, expected.start_ms, expected.end_ms)
        for name, expected in play.script.results.items()
    ]
    return [(result, stamp_ms) for result in [*results, Said(play.session, "session_end")]]


def test_a_script_holds_each_result_with_the_chunk_that_brings_it(plays: list[Play]) -> None:
    expected: Script = plays[0].script
    assert {name: (one.start_ms, one.end_ms, one.chunk) for name, one in expected.results.items()} == {
        ("partial", 0, 0): (0, 800, 7),
        ("final", 0, 5): (0, 1250, 12),
    }
    assert expected.chunks() == 13


def test_results_are_late_by_the_time_since_their_last_sample_was_captured(plays: list[Play]) -> None:
    outcome = judge(plays, 1_000.0, said(plays[0], 2_300.0) + said(plays[1], 2_400.0))
    # The second session begins 50 ms later.
    assert outcome.latencies_ms == [500.0, 50.0, 550.0, 100.0]
    assert outcome.end_latencies_ms == [50.0, 100.0]
    assert (outcome.wrong, outcome.behind, outcome.last_ms) == (0, 0, 2_400.0)


@pytest.mark.parametrize("field", ["text", "start_ms", "end_ms", "utterance"])
def test_a_result_that_differs_is_wrong(plays: list[Play], field: str) -> None:
    results = said(plays[0], 2_300.0) + said(plays[1], 2_300.0)
    setattr(results[0][0], field, "other" if field == "text" else 7)
    outcome = judge(plays, 1_000.0, results)
    # Under another name it is both: not to be said, and not said.
    assert outcome.wrong == (2 if field == "utterance" else 1)


def test_a_result_that_comes_twice_or_never_is_wrong(plays: list[Play]) -> None:
    (partial, final, end), whole = said(plays[0], 2_300.0), said(plays[1], 2_300.0)
    assert judge(plays, 1_000.0, [partial, partial, final, end, *whole]).wrong == 1
    outcome = judge(plays, 1_000.0, [final, end, *whole])
    assert (outcome.wrong, outcome.examples) == (1, ["('partial', 0, 0) of live-0 never came"])


def test_a_session_that_has_not_ended_is_behind_and_not_wrong(plays: list[Play]) -> None:
    outcome = judge(plays, 1_000.0, said(plays[0], 2_300.0))
    assert (outcome.wrong, outcome.behind) == (0, 1)


def test_an_engine_that_says_other_things_of_chunks_is_no_measure() -> None:
    class Fickle(NoModel):
        def run(self, clips: list[np.ndarray]) -> list[list[Expected]]:
            return [[] for _ in clips]

    with pytest.raises(ValueError, match="something else of a whole recording"):
        script(Fickle(), np.zeros(20_000, np.float32))
