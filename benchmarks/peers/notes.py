"""What stands at the end of docs/peers.md: where the cost of a chunk goes, and what was done about it."""

NOTES = """## Against what was aimed at

| aim | found, in the run above |
|---|---|
| without a model at most 100 us a chunk on Prism | 205, where the plain loop takes 84: 2.4 of it |
| with DTLN within 1.15 of the plain loop's CPU | 1.02 |
| with DTLN three quarters of the plain loop's live sessions | the same number of those tried, 10 |
| the same without a model | 60, where the loop has 240 or more |
| finals within 500 ms of the end of a stream at p99, no model | 73 to 260 ms with up to 120 sessions |
| the same with DTLN | 16, 126 and 415 ms with 1, 10 and 20 sessions |
| checkpoints below 10 % | on Flink, every 1 s: 44 % without a model, 30 % with DTLN |
| ahead of both peers without a model | no: both are cheaper and sooner |
| the same with DTLN | no: of this job's CPU, Quix Streams takes 0.92, Bytewax 0.75 |

With DTLN a chunk of 100 ms took 3 to 5 ms here, so that two cores have time for 20 to 30 sessions at most, whoever runs
them; 60 and 120 say who falls behind how far. The machine's own speed drifted by a third meanwhile: the plain loop and
Bytewax without recovery do the same with the model, and that is what their rows lie apart.

## Where this job's own cost goes

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

Live it is another job: with few chunks in a bundle, a chunk pays for the bundle and for writing its session's state, so
that the fewer sessions there are, the dearer is each chunk (see "Live CPU"). With one session a round ends with the
chunk; with many it lasts `kafka.poll_round_ms` (80), and the next one waits until the bundles of the last are done:
that is what the latency is made of. Peers that hand over record by record are sooner by about that much.

What was done about that, each step with those before it, one after the other on a machine of which other things took
1.3 to 1.8 of two cores: CPU us per chunk of Python and of Prism; latency of results in ms, p50 / p99

| | full speed | 1 live | 20 live |
|---|---|---|---|
| before | 167 + 55 | 9,800 + 11,800; 109 / 165 | 1,060 + 700; 194 / 917 |
| a mended Prism | 162 + 26 | 12,400 + 2,400; 101 / 224 | 1,460 + 320; 162 / 354 |
| a lean worker | 148 + 30 | 8,000 + 4,100; 80 / 170 | 1,160 + 360; 161 / 548 |
| rounds as needed, 20 ms at least | | 10,900 + 2,700; 12 / 27 | 2,560 + 1,080; 92 / 200 |
| the same, 40 ms at least | | | 1,620 + 380; 87 / 240 |
| the same, 60 ms at least | | | 1,450 + 340; 74 / 251 |
| the same, 80 ms at least: the default | | | 1,260 + 330; 119 / 260 |

The last three are of a busier time than the others. A final came 10 ms behind the end of its stream with one session
(67 before), and 128 / 175 ms with 20 (142 / 210).

With less beside it (0.5 of two cores) and rounds of 40 ms, in two runs: one session 12 / 18 and 13 / 33 ms, its final
after 12; 20 sessions 62 / 94 and 57 / 98 ms, their finals after 66 / 89 and 61 / 101, for 3.5 to 3.8 ms of CPU a chunk:
the sooner the bundles are done, the more rounds there are. Rounds of 80 ms: 107 / 184 ms for 2.4 ms of CPU, with 1.4 of
two cores taken by others. So `kafka.poll_round_ms` is where latency is bought.

* A mended Prism (`deploy/prism.sh`): between the last output of a bundle and the worker's answer it span in a loop.
* A lean worker (`pipelines/lean_worker.py`): the end of each bundle waited for a thread that samples its states and
  sleeps, for up to a sixth of the bundle's time; and most of its thirty metrics were Beam's own, and zero.
* Rounds as needed: a round of reading lasted 80 ms whether something came or not. Now it ends when there is something.
* On Flink the pool's workers are lean as well (`pipelines/worker.py`). Before and after, on a quiet machine: one live
  session 133 / 240 and 77 / 168 ms. With 20 (218 / 589 and 221 / 540 ms), and in CPU (62 and 68 ms a chunk with one,
  6.4 and 7.1 with 20, most of it Flink's own), the two differ by no more than two runs of the same.

After that, the job before and after by turns, on a machine with two processes more than cores and then on a quiet one,
in us of CPU per chunk of both, and ms:

| | full speed | 1 live | 20 live |
|---|---|---|---|
| before, busy | 197, 223 | | 2,400, 2,450; 123 / 216, 93 / 201 |
| after, busy | 169, 176 | | 1,210, 1,390; 96 / 233, 69 / 118 |
| before, quiet | 181 | 13,400; 13 / 29 | 2,710; 93 / 141 |
| after, quiet | 186, 175 | 13,600, 12,500; 14 / 16, 11 / 14 | 1,970, 1,730; 79 / 131, 77 / 119 |

* States that a worker has written stay with it: the mended Prism lets it keep them, and they are weighed by their
  length (`pipelines/lean_worker.py`). With Beam's own weighing, which follows all references, 20 sessions took 3.1 ms a
  chunk, more than without.
* All states of a bundle are written before an answer is waited for. That had been worth nothing as long as each state
  was waited for when it was read; now it is worth 10 %.
* Headers are handed on as they come, and windows and the partition's end are looked up once and not for each record.

What was tried, without a model, each against the job without it in turn on that machine; the same run differed by 10 %
from one time to the next, so less than that is only seen by itself, in a loop of its own:

| | |
|---|---|
| LINEAR16 decoded by one product and not checked again (integers cannot be out of bounds) | 1.7 us, was 4; kept |
| windows made once and not per record, one update of a metric a round | 1.7 us less; the windows kept |
| 8 MB and not 1 MB of a partition in a fetch | 121 us, as before |
| these three together | 109 us, was 121 |
| the list of a session's chunks as one record for the coder | nothing: both ways take about 1 us |
| rounds of 2,000 records and not 500 | nothing |
| less garbage collection in Prism (GOGC=400) | nothing |
| live, rounds of 20 ms and not 80, of fixed length | 1 session p50 87 ms, was 204; 20: 2.0 ms of CPU, was 1.3 |
| a round claimed at once, one update of a metric a round | reading alone 31 to 43 us a record, as before |
| Python's threads take turns after 0.5 ms and not 5 ms | nothing, live with 20 sessions |
"""
