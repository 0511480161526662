"""What a chunk means under a key whose session has ended: another session, or nothing. Knows no Beam."""

from msgspec.structs import replace

from model_runtime.errors import AudioError
from service.wire import NO_SEQUENCE
from transforms.session_book import SessionBook
from transforms.session_notes import SessionNotes
from transforms.session_order import Order, Verdict
from transforms.stream_records import Chunk


def order_after(tombstone: SessionBook, chunk: Chunk, notes: SessionNotes) -> Order | None:
    """Gives the order of a session that goes on where an ended one stopped; None if the chunk belongs to that."""
    if tombstone.ended == "state":
        # Nothing has happened to its chunks: the order is as it was, and what waits in it goes on waiting.
        return replace(tombstone.order, missing=0, duplicates=0)
    verdict = tombstone.order.take(chunk)
    if verdict is not Verdict.NEXT:
        notes.cut_off(tombstone)
    tombstone.order.waiting = []
    if verdict is Verdict.DUPLICATE:
        notes.count("chunks_duplicate")
        return None
    over = tombstone.ended == "end_of_stream" and chunk.sequence != NO_SEQUENCE
    if verdict is Verdict.LATE or over:
        notes.count("chunks_late")
        notes.refuse(chunk, "order", AudioError("the chunk came after its session had ended"))
        return None
    # The sender goes on after a pause, or after the longest session: what was before is not missing.
    return Order(max(0, chunk.sequence), chunk.partition, chunk.offset - 1)
