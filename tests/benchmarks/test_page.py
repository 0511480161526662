"""The tables of docs/peers.md from findings."""

from benchmarks.peers.candidates import Candidate
from benchmarks.peers.figures import Findings, FullSpeed, Lateness, Plan
from benchmarks.peers.page import tables

PLAIN = Candidate("plain", "plain loop", "plain_job")
LOGGED = Candidate("logged", "Logged", "logged_job", bare="plain")


def text_of(plan: Plan, *found: Findings) -> str:
    names = ("plain", "logged")
    return "\n".join(
        tables(plan, [PLAIN, LOGGED], {("none", name): one for name, one in zip(names, found, strict=True)})
    )


def test_ratios_are_to_the_plain_loop_and_checkpoints_beside_what_is_the_same_without_them() -> None:
    plain = Findings(full_speed=[FullSpeed(5_000, 40), FullSpeed(7_000, 60)])
    text = text_of(Plan({"none": "none"}, 2, 5.0, [], 0, []), plain, Findings(full_speed=[FullSpeed(1_000, 75)]))
    assert "| plain loop | 6,000 | 50 | 1.00 |\n| Logged | 1,000 | 75 | 1.50 |\n" in text
    assert "| | without | every 1 s |\n|---|---|---|\n| Logged | 50 | 75 |\n" in text


def test_what_has_failed_has_its_reason_and_empty_cells() -> None:
    text = text_of(
        Plan({"none": "none"}, 1, 5.0, [20], 0, [500]), Findings(idle={500: 2048}), Findings(failure="wrong: 3")
    )
    assert text.startswith("**Logged has failed.** wrong: 3\n")
    assert "| plain loop |  |  |  |\n| Logged |  |  |  |\n" in text
    assert "| plain loop | 2.0 |\n| Logged |  |\n" in text


def test_latencies_are_medians_of_the_rounds_and_the_largest_number_is_of_those_in_time() -> None:
    rounds = [{1: Lateness(5, 10, 6, 7, 90, False), 20: Lateness(90, 300, 80, 90, 90, False)} for _ in range(2)]
    rounds[1][1] = Lateness(7, 14, 8, 9, 90, False)
    behind = Findings(live=[{1: Lateness(5, 10, 6, 7, 90, False), 20: Lateness(5, 10, 6, 7, 90, True)}])
    text = text_of(Plan({"none": "none"}, 2, 5.0, [1, 20], 0, []), Findings(live=rounds), behind)
    assert "| plain loop | 6 / 12 (7 / 8) | 90 / 300 (80 / 90) |\n| Logged | 5 / 10 (6 / 7) | behind |\n" in text
    assert "| plain loop | 1 | 1, 20 |\n| Logged | 1 | 1, 20 |\n" in text
    assert "| plain loop | 90 | 90 |\n| Logged | 90 | 90 |\n" in text
