"""Python files as text and back: encodings, byte order marks, and replacing a file without ever leaving half of one.

Knows no Python beyond the encoding declaration.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import secrets
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path

#: Bytes. Programs write longer files than this, for other programs; to analyse one would take minutes.
LONGEST = 10_000_000


class FileProblem(Exception):
    """A file that cannot be read or written; the message is one line and names no path."""


class TooLong(FileProblem):
    """A file that can be read and is not: no person wrote it."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text and what it takes to write it back: `data` is what stood on disk, `text` has no byte order mark."""

    text: str
    encoding: str
    bom: bool
    data: bytes

    def encode(self, text: str) -> bytes:
        """`text` in the encoding of this file."""
        try:
            if self._bytes(self.text) != self.data:  # stateful encodings have several spellings of one text
                raise FileProblem(f"its {self.encoding} text cannot be written back unchanged")
            return self._bytes(text)
        except UnicodeEncodeError as error:
            raise FileProblem(
                f"{error.object[error.start : error.end]!r} cannot be written in {self.encoding}"
            ) from None

    def _bytes(self, text: str) -> bytes:
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


def decode(data: bytes) -> FileText:
    """The text of a Python file: UTF-8, or what its byte order mark or PEP 263 declaration says."""
    if b"\0" in data:
        raise FileProblem("is binary: it contains null bytes")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        declared = "unknown encoding" in (error.msg or "") or "problem" in (error.msg or "")
        raise FileProblem(error.msg if declared else _not_utf8(data)) from None
    bom = data.startswith(codecs.BOM_UTF8)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        return FileText(data[3 * bom :].decode(encoding), encoding, bom, data)
    except UnicodeDecodeError:
        raise FileProblem(_not_utf8(data) if encoding == "utf-8" else f"is not {encoding}, which it declares") from None
    except LookupError as error:  # bytes-to-bytes codecs such as `hex` pass the tokenizer
        raise FileProblem(str(error)) from None


def _not_utf8(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"is not UTF-8 (byte 0x{data[error.start]:02x} on line {line}) and declares no encoding"
    return "declares no usable encoding"


def read(path: Path | str, longest: float = LONGEST) -> FileText:
    """A file's text. Devices and pipes are refused: reading one may never end. So is what is too long to analyse."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise FileProblem("is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise FileProblem("is not a regular file")
        if status.st_size > longest:
            raise TooLong(f"has {status.st_size} bytes, more than {longest}: it is not analysed")
        with open(path, "rb") as file:
            return decode(file.read())
    except OSError as error:
        raise FileProblem(reason(error)) from None


def replace(
    path: Path | str, data: bytes, expected: bytes | None = None, mode: int | None = None, *, lasts: bool = True
) -> None:
    """Replace a file's content at once, keeping its mode; a new one gets `mode`, or what `open` would give. With
    `expected`, only if the file still holds that. Waits for the disk where it is to last when the power fails.

    A link stays a link: the file that it points to is replaced. A device or a pipe, such as /dev/null, is written into.
    """
    target = os.path.realpath(path)
    try:
        if expected is not None:
            with open(target, "rb") as file:
                if file.read() != expected:
                    raise FileProblem("changed while it was being worked on, and was left alone")
            if not os.access(target, os.W_OK):
                raise FileProblem("is read-only")
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                file.write(data)
        else:
            _replace(target, data, mode, lasts)
    except OSError as error:
        raise FileProblem(f"cannot be written: {reason(error)}") from None


def _replace(target: str, data: bytes, mode: int | None, lasts: bool) -> None:
    # the name is known before there is a file: an interrupt inside of `mkstemp` would leave one behind
    temporary = os.path.join(os.path.dirname(target), f".graphmend-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb", opener=_private) as file:
            file.write(data)
            if lasts:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, _mode_for(target, mode))
        os.replace(temporary, target)
    except BaseException:  # an interrupt too: nothing half written stays behind
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _mode_for(target: str, new: int | None) -> int:
    """The mode of the file that is replaced; for a new one what is wanted, or what `open` would give."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        if new is not None:
            return new
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def reason(error: OSError) -> str:
    """What an operating system error says, without number and path."""
    return (error.strerror or str(error) or type(error).__name__).lower()
