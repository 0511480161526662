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
requests, so that the fewer sessions there are, the dearer is each chunk (see "Live CPU"). With one session a round ends
with the chunk; with many it lasts `kafka.poll_round_ms` (40), and the next one waits until the bundles of the last are
done: that is what the latency is made of. Peers that hand over record by record are sooner by about that much.

What was done about that, each step with those before it, in one process tree after the other on a machine that had as much
else to do as it could (1.5 to 2 of 2 cores busy with other things): CPU us per chunk of Python and of Prism, latency of
results p50 / p99 in ms

| | full speed | 1 live | 20 live |
|---|---|---|---|
| before | 167 + 55 | 9,800 + 11,800; 109 / 165 | 1,060 + 700; 194 / 917 |
| Prism waits for a worker's answer and does not spin (`deploy/prism.sh`) | 162 + 26 | 12,400 + 2,400; 101 / 224 | 1,460 + 320; 162 / 354 |
| no thread samples a bundle's states, which the bundle's end waited for, and only metrics of the job's own are written (`pipelines/lean_worker.py`) | 148 + 30 | 8,000 + 4,100; 80 / 170 | 1,160 + 360; 161 / 548 |
| rounds end when there is something, after 20 ms at least | | 10,900 + 2,700; 12 / 27 | 2,560 + 1,080; 92 / 200 |
| the same, after 40 ms at least (the default) | | | 1,620 + 380; 87 / 240 |
| the same, after 60 ms at least | | | 1,450 + 340; 74 / 251 |
| the same, after 80 ms at least | | | 1,260 + 330; 119 / 260 |

The last three are of the busiest time. A final came 10 ms behind the end of its stream with one session (67 before), and
128 / 175 ms (142 / 210) with 20.

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
| live, rounds of 20 ms and not 80, whether something came or not | one session p50 87 ms, was 204; 20 no sooner, at 2.0 ms of CPU per chunk, was 1.3 |
| a round's offsets claimed at once, its metrics updated once, the partition's end asked for once | nothing to be seen in reading alone (31 to 43 us a record by kafka-python, as before) |
| Python's threads take turns after 0.5 ms and not 5 ms (`sys.setswitchinterval`) | nothing, live with 20 sessions |
"""
