"""What stands at the end of docs/peers.md: where the cost of a chunk goes, and what was done about it."""

NOTES = """## Where this job's own cost goes

Full speed on Prism without a model, from the CPU time of every thread and a profile of the bundles by thread time
(`cProfile.Profile(time.thread_time)`), on a machine that had much else to do; in us per chunk, of about 120:

| | us |
|---|---|
| Prism: the audio goes in once and out once, 3.3 kB each; 2 % of it is garbage collection | 25 to 35 |
| kafka-python: it parses records in Python (12), its I/O thread (7), a result sent for 8 chunks (80) | 29 |
| the session: order, deadlines, book, decoding (4, now 1), NoModel (1.5) | 12 |
| from record to chunk: stamp (3), headers (2.3), claim, window, group | 10 |
| gRPC's own threads in Python | 12 to 15 |
| coders: MessagePack of records and of the list of a session's chunks | 1 |

The rest is Beam's work per bundle and element, and threads that wait for each other's lock.

Bytewax and Quix Streams read and write with librdkafka, in C; the plain loop reads with kafka-python, as this job does.
That is why it can be dearer than they are, and it is the largest part of the cost that another client would save.

Live it is another job: with few chunks in a bundle, a chunk pays for the bundle and for its session's three state
requests, so that the fewer sessions there are, the dearer is each chunk (see "Live CPU"), while latency is that of a
round of 80 ms and of the bundles behind it. Peers that hand over record by record are sooner by about that much.

What was tried, without a model, each against the job without it in turn on that machine; the same run differed by 10 %
from one time to the next, so less than that is only seen by itself, in a loop of its own:

| | |
|---|---|
| LINEAR16 decoded by one product and not checked again (integers cannot be out of bounds) | 1.7 us, was 4; kept |
| windows made once and not per record, one update of a metric a round | 1.7 us less; not worth its lines |
| 8 MB and not 1 MB of a partition in a fetch | 121 us, as before |
| these three together | 109 us, was 121 |
| the list of a session's chunks as one record for the coder | nothing: both ways take about 1 us |
| rounds of 2,000 records and not 500 | nothing |
| less garbage collection in Prism (GOGC=400) | nothing |
| all state writes of a bundle sent before any is waited for | nothing, neither CPU nor latency |
| live, rounds of 20 ms and not 80 | one session p50 87 ms, was 204; 20 no sooner, at 2.0 ms of CPU per chunk, was 1.3 |
"""
