"""Takes the network away from this process and its children, where the system allows it."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000


def leave_network() -> str | None:
    """Moves this process into a network namespace without interfaces; gives why the network is still there, else None.

    The attempt is made in a child first, since half of it (a user namespace without a mapping) would be worse than
    none. The process must have one thread.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    try:
        child = os.fork()
    except OSError as error:
        return f"the system refuses to fork ({error.strerror}), so it was not tried"
    if child == 0:
        status = 1
        try:
            _leave()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return "the system refuses network namespaces to this user"
    try:
        _leave()
    except OSError as error:
        return f"the network namespace could not be entered: {error.strerror}"
    return None


def _leave() -> None:
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_NEW_NETWORK)
    except PermissionError:
        _unshare(_NEW_USER | _NEW_NETWORK)
        # Without a mapping files would belong to `nobody`; groups may be mapped only once setgroups is denied.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
