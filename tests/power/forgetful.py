"""A file system that forgets: a mount whose files are those of the simulated platter.

    python -m tests.power.forgetful MOUNTPOINT SEED

Rule: the simulator's own model (`runtime.simulated.platter`) decides what a real process finds
after a loss of power. A sync keeps a file's bytes, and a sync of the folder keeps its names. Of
everything else, any sectors and any names may be lost, at random. A test loses the power by setting
the attribute `user.lose_power` on the mount, after it has killed the processes.

The kernel must cache nothing, since its cache would keep what was lost. Files grow only at their
ends, as in `runtime.disk.interface`. A write elsewhere is refused, so that a test notices it.
"""

import errno
import os
import stat
import sys
from random import Random
from typing import Any

import mfusepy

from runtime.simulated.platter import Inode, Platter, folder_of

LOSE_POWER = "user.lose_power"
_ROOM = {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1 << 22, "f_bfree": 1 << 22}
_ROOM |= {"f_bavail": 1 << 22, "f_namemax": 255}


def refused(number: int) -> mfusepy.FuseOSError:
    """The system's error of this number."""
    return mfusepy.FuseOSError(number)


class Forgetful(mfusepy.Operations):
    """One mount."""

    use_ns = True

    def __init__(self, seed: int) -> None:
        self._platter = Platter(Random(seed))
        self._open: dict[int, Inode] = {}
        self._last = 0

    def init_with_config(self, conn_info: Any, config_3: Any) -> None:
        """Have every call come here, and unlinked files stay with those who hold them."""
        for setting in ("direct_io", "hard_remove", "nullpath_ok"):
            setattr(config_3.contents, setting, 1)
        for timeout in ("entry_timeout", "negative_timeout", "attr_timeout"):
            setattr(config_3.contents, timeout, 0.0)

    # -- what a disk is ---------------------------------------------------------------------------

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        if name != LOSE_POWER:
            raise refused(errno.ENOTSUP)
        self._platter.lose_power()
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        inode = self._open[fh]
        inode.sync(inode.changes)
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._platter.sync_folder(_name(path))
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return _ROOM

    # -- names ------------------------------------------------------------------------------------

    def getattr(self, path: str | None, fh: int | None = None) -> dict[str, Any]:
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid(), "st_nlink": 1}
        if path is not None and _name(path) in self._platter.folders:
            return owner | {"st_mode": stat.S_IFDIR | 0o700}
        inode = self._inode(path, fh)
        return owner | {"st_mode": stat.S_IFREG | 0o600, "st_size": len(inode.content)}

    def readdir(self, path: str, fh: int) -> list[str]:
        name = _name(path)
        context = [*self._platter.names, *filter(None, self._platter.folders)]
        return [".", "..", *(one.rpartition("/")[2] for one in context if folder_of(one) == name)]

    def mkdir(self, path: str, mode: int) -> int:
        self._platter.add_folder(_name(path))
        return 0

    def rename(self, old: str, new: str) -> int:
        self._inode(old)
        self._platter.rename(_name(old), _name(new))
        return 0

    def unlink(self, path: str) -> int:
        self._inode(path)
        self._platter.unlink(_name(path))
        return 0

    # -- contents ---------------------------------------------------------------------------------

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return self._opened(self._platter.create(_name(path)))

    def open(self, path: str, flags: int) -> int:
        inode = self._inode(path)
        if flags & os.O_TRUNC:
            inode.truncate(0)
        return self._opened(inode)

    def release(self, path: str, fh: int) -> int:
        del self._open[fh]
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._open[fh].content[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        inode = self._open[fh]
        if offset != len(inode.content):
            raise refused(errno.EINVAL)
        inode.append(bytes(data))
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._inode(path, fh).truncate(length)
        return 0

    # -- what makes no difference -----------------------------------------------------------------

    def chmod(self, path: str, mode: int) -> int:
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0

    def _opened(self, inode: Inode) -> int:
        self._last += 1
        self._open[self._last] = inode
        return self._last

    def _inode(self, path: str | None, fh: int | None = None) -> Inode:
        if fh is not None and fh in self._open:
            return self._open[fh]
        inode = None if path is None else self._platter.names.get(_name(path))
        if inode is None:
            raise refused(errno.ENOENT)
        return inode


def _name(path: str) -> str:
    return path.strip("/")


def main() -> None:
    mountpoint, seed = sys.argv[1:]
    mfusepy.FUSE(
        Forgetful(int(seed)),
        mountpoint,
        foreground=True,
        nothreads=True,
        fsname="forgetful",
        # Said here as well: what the configuration says of them is not always taken. A name that
        # the kernel remembers and the platter doesn't can't be created for a second.
        entry_timeout=0,
        negative_timeout=0,
        attr_timeout=0,
    )


if __name__ == "__main__":
    main()
