"""What bytes that should be audio really are, told from their first bytes, for error messages."""

import struct

# Sub-formats of WAVE_FORMAT_EXTENSIBLE end in these bytes when they only repeat a format tag.
_TAG_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_EXTENSIBLE = 0xFFFE
_WAV_TAGS = {
    0x0001: "PCM",
    0x0002: "Microsoft ADPCM",
    0x0003: "float",
    0x0006: "A-law",
    0x0007: "mu-law",
    0x0011: "IMA ADPCM",
    0x0031: "GSM 6.10",
    0x0050: "MPEG layer 2",
    0x0055: "MP3",
    0x00FF: "AAC",
}
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer (the file itself was never fetched)"),
    (b"RIFX", "a big-endian RIFX WAV file"),
    (b"RF64", "an RF64 WAV file"),
    (b"riff\x2e\x91\xcf\x11", "a Wave64 file"),
    (b"fLaC", "a FLAC file"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "an MP3 file (ID3 tag)"),
    (b"FORM", "an AIFF file"),
    (b".snd", "a Sun AU file"),
    (b"caff", "a Core Audio file"),
    (b"#!AMR", "an AMR file"),
    (b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"%PDF", "a PDF file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"SQLite format 3", "an SQLite database"),
)


def describe_bytes(data: bytes) -> str:
    """Says what the bytes are, such as "an HTML page"; the first 4 kB of a file are enough."""
    if not data:
        return "empty (0 bytes)"
    if data.startswith(b"RIFF"):
        return _describe_riff(data)
    for signature, description in _SIGNATURES:
        if data.startswith(signature):
            return description
    if data[4:8] == b"ftyp":
        return "an MP4 or M4A file"
    if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0:
        return "an MP3 or AAC stream"
    if not data.strip(b"\0"):
        return "nothing but zero bytes"
    return _describe_text(data) or f"of an unknown kind (first bytes {data[:8].hex(' ')})"


def _describe_text(data: bytes) -> str | None:
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    if start.startswith(b"<?xml"):
        return "an XML document"
    try:
        text = data[:200].decode("ascii")
    except UnicodeDecodeError:
        return None
    if not text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable():
        return None
    if start.startswith((b"{", b"[")):
        return "JSON text"
    return f"text ({text[:40].strip()!r})"


def _describe_riff(data: bytes) -> str:
    if data[8:12] != b"WAVE":
        return f"a RIFF file of type {data[8:12]!r}, not WAVE"
    chunks: list[str] = []
    coding = ""
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        if name == b"fmt ":
            coding = _describe_coding(data[at + 8 : at + 8 + size])
        chunks.append(name.decode("latin-1").strip())
        at += 8 + size + size % 2
    return f"a WAV file{' of ' + coding if coding else ' without fmt chunk'} (chunks: {', '.join(map(repr, chunks))})"


def _describe_coding(fmt: bytes) -> str:
    if len(fmt) < 16:
        return f"a damaged fmt chunk of {len(fmt)} bytes"
    tag, channels, rate_hz = struct.unpack_from("<HHI", fmt)
    bits = struct.unpack_from("<H", fmt, 14)[0]
    name = _WAV_TAGS.get(tag, f"format tag 0x{tag:04x}")
    if tag == _EXTENSIBLE and len(fmt) >= 40:
        guid = fmt[24:40]
        sub_tag = struct.unpack_from("<H", guid)[0]
        known = guid[2:] == _TAG_GUID_TAIL and sub_tag in _WAV_TAGS
        name = _WAV_TAGS[sub_tag] if known else f"unknown sub-format {_guid_text(guid)}"
    return f"{name}, {bits} bits, {channels} channels, {rate_hz} Hz"


def _guid_text(guid: bytes) -> str:
    first, second, third = struct.unpack_from("<IHH", guid)
    return f"{first:08x}-{second:04x}-{third:04x}-{guid[8:10].hex()}-{guid[10:].hex()}"
