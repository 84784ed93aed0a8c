"""Takes rights from this process that reading files does not need, where Linux offers it.

Landlock forbids what would change the file system, and signals to others; seccomp forbids sockets
and other programs. Neither needs a right of its own, both hold for good and for
all that the process starts. What the kernel does not know is left out: an older one, another
system, or a processor whose numbers of system calls are not listed here.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from contextlib import suppress

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Landlock's system calls, which have the same numbers on all processors."""
_ASK_VERSION = 1
_BENEATH = 1
_EXECUTE, _WRITE_FILE, _TRUNCATE, _IOCTL_DEV = 1 << 0, 1 << 1, 1 << 14, 1 << 15
_FILES = _EXECUTE | _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Running, writing, removing and making; rights 2 and 3 are reading."""
_REFER = 1 << 13
_NETWORK = 0b11
"""Binding and connecting TCP sockets."""
_SCOPES = 0b11
"""Abstract sockets of, and signals to, processes that are not confined with this one."""
_WITH_REFER, _WITH_TRUNCATE, _WITH_NETWORK, _WITH_IOCTL, _WITH_SCOPES = 2, 3, 4, 5, 6
"""Versions of Landlock that brought these."""
_FILTER = 2
_LOAD, _IS_EQUAL, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM = 1
_PROCESSORS = {
    "x86_64": (0xC000003E, (41, 59, 322, 425)),
    "aarch64": (0xC00000B7, (198, 221, 281, 425)),
}
"""How seccomp names a processor, and its numbers of socket, execve, execveat and io_uring_setup."""
_X32 = 0x40000000
"""In the numbers of calls with short pointers, which would pass by the others."""


def confine() -> None:
    """Leaves this process the right to read files and to use what it has open already."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, one, none, none, none):
        return
    _restrict_files(libc)
    _refuse_calls(libc)


def landlock_version() -> int:
    """Of this kernel; 0 where it has none, or where that is switched off."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))


def _restrict_files(libc: ctypes.CDLL) -> None:
    version = landlock_version()
    if not version:
        return
    files = _FILES
    newer = ((_WITH_REFER, _REFER), (_WITH_TRUNCATE, _TRUNCATE), (_WITH_IOCTL, _IOCTL_DEV))
    files |= sum(right for since, right in newer if version >= since)
    network = _NETWORK if version >= _WITH_NETWORK else 0
    scopes = _SCOPES if version >= _WITH_SCOPES else 0
    # Kernels refuse more fields than they know, unless those are zero.
    rights = struct.pack("=QQQ", files, network, scopes)
    ruleset = libc.syscall(_CREATE_RULESET, rights, ctypes.c_size_t(len(rights)), 0)
    if ruleset < 0:
        return
    try:
        with suppress(OSError):
            null = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
            allowed = _WRITE_FILE | (_TRUNCATE & files)
            libc.syscall(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", allowed, null), 0)
            os.close(null)
        libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _refuse_calls(libc: ctypes.CDLL) -> None:
    machine = os.uname().machine
    if machine not in _PROCESSORS:
        return
    processor, refused = _PROCESSORS[machine]
    number_at, processor_at = 0, 4
    # Jumps count the instructions that they skip; the last two allow and refuse.
    program = [
        (_LOAD, 0, 0, processor_at),
        (_IS_EQUAL, 0, len(refused) + 3, processor),
        (_LOAD, 0, 0, number_at),
        (_IS_AT_LEAST, len(refused) + 1, 0, _X32),
    ]
    program += [
        (_IS_EQUAL, len(refused) - place, 0, number) for place, number in enumerate(refused)
    ]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE | _EPERM)]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    pointer = Program(len(program), ctypes.addressof(buffer))
    none = ctypes.c_ulong(0)
    libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(pointer), none, none)
