"""Confines a check whose text is not the user's own: it writes below one folder, starts no program, opens no socket.

Two walls of Linux, both set by an ordinary process for itself and its children, and never taken off again: seccomp
filters system calls, Landlock (Linux 5.13) the places that are written. Reading stays allowed: what is read has nowhere
to go. `apply` raises where one of them is missing; nobody may take a half for the whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
import tempfile
from typing import Final

# prctl
_SET_SECCOMP, _FILTER = 22, 2
_NO_NEW_PRIVILEGES = 38

# classic BPF over `struct seccomp_data { int nr; __u32 arch; __u64 ip; __u64 args[6]; }`
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
_X32: Final = 0x40000000
"""Numbers from here on are the same calls in another coat."""

_EVERYWHERE: Final = {
    # programs reach others by these; io_uring does what a filter has refused
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsmount": 432, "pidfd_open": 434, "pidfd_getfd": 438, "mount_setattr": 442,
    "fchmodat2": 452,
}  # fmt: skip
_REFUSED: Final[dict[str, tuple[int, dict[str, int]]]] = {
    # the audit number of the architecture, and its numbers of the calls that are refused
    "x86_64": (0xC000003E, {
        "socket": 41, "execve": 59, "kill": 62, "truncate": 76, "link": 86, "chmod": 90, "fchmod": 91, "chown": 92,
        "fchown": 93, "lchown": 94, "ptrace": 101, "rt_sigqueueinfo": 129, "utime": 132, "pivot_root": 155,
        "chroot": 161, "mount": 165, "umount2": 166, "swapon": 167, "reboot": 169, "init_module": 175,
        "delete_module": 176, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
        "lremovexattr": 198, "fremovexattr": 199, "tkill": 200, "utimes": 235, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "fchownat": 260, "futimesat": 261, "linkat": 265, "fchmodat": 268,
        "unshare": 272, "utimensat": 280, "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308,
        "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313, "bpf": 321, "execveat": 322,
        "userfaultfd": 323,
    }),
    "aarch64": (0xC00000B7, {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "linkat": 37, "umount2": 39, "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "fchmod": 52,
        "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "unshare": 97, "kexec_load": 104,
        "init_module": 105, "delete_module": 106, "ptrace": 117, "kill": 129, "tkill": 130, "rt_sigqueueinfo": 138,
        "reboot": 142, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "execve": 221, "swapon": 224,
        "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "finit_module": 273, "bpf": 280, "execveat": 281, "userfaultfd": 282,
    }),
}  # fmt: skip

# Landlock has the same numbers on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_ALL_WRITES = sum(1 << bit for bit in (0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Execute, write a file, remove or make anything: the rights of the first version."""
_LATER = ((2, 1 << 13), (3, 1 << 14))
"""From which version on there are the rights to move between folders, and to truncate."""


class Unconfined(Exception):
    """This system has no such walls; the message is one line."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def apply(folder: str) -> None:
    """Confines this process for the rest of its life; `folder` is where it may write. Raises `Unconfined`."""
    if not sys.platform.startswith("linux"):
        raise Unconfined(f"{sys.platform} has no means to confine a process")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise Unconfined("this kernel lets no process give up privileges")
    _places(libc, folder)
    _calls(libc)
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def _places(libc: ctypes.CDLL, folder: str) -> None:
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        raise Unconfined("this kernel has no Landlock (Linux 5.13 has)")
    handled = _ALL_WRITES | sum(right for since, right in _LATER if version >= since)
    rules = _Ruleset(handled)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    if ruleset < 0:
        raise Unconfined("Landlock is switched off")
    try:
        _allow(libc, ruleset, folder, handled & ~1)
        with contextlib.suppress(OSError):
            _allow(libc, ruleset, os.devnull, 1 << 1)
        if libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            raise Unconfined("Landlock does not take this process")
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(rights, descriptor)
        if libc.syscall(_ADD_RULE, ruleset, _BENEATH, ctypes.byref(rule), 0) != 0:
            raise Unconfined(f"Landlock does not take the folder {path}")
    finally:
        os.close(descriptor)


def _calls(libc: ctypes.CDLL) -> None:
    machine = platform.machine()
    if machine not in _REFUSED:
        raise Unconfined(f"the system calls of {machine} are not known")
    audit, calls = _REFUSED[machine]
    numbers = sorted({*calls.values(), *_EVERYWHERE.values()})
    lines = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _REFUSE),  # another architecture's numbers mean other calls
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, len(numbers), 0, _X32),
    ]
    lines += [(_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    program = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    whole = _Program(len(lines), ctypes.cast(program, ctypes.POINTER(_Instruction)))
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(whole), 0, 0) != 0:
        raise Unconfined("this kernel filters no system calls")
