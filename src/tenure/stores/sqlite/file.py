"""The file itself: where it is, that it is still the one that was opened, and what may not hold it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Final

from tenure.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from tenure.stores.sqlite.refusals import gone

MOUNTS: Final = Path("/proc/self/mounts")

# SQLite's write-ahead log needs memory shared between all that use the file: one machine's.
_NETWORK: Final = {
    "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs", "virtiofs", "vboxsf",
}  # fmt: skip
# A file system in user space is taken for a network's, but for those known to keep files on this machine.
_LOCAL_FUSE: Final = {"fuse.bindfs", "fuse.cryfs", "fuse.encfs", "fuse.fuse-overlayfs", "fuse.gocryptfs"}

# A file's device and number: the same file, whatever its name.
Identity = tuple[int, int]

# Closing any descriptor of a file drops all locks that this process holds on it: nobody opens a new file of
# ours between its creation and that close.
_creating = threading.Lock()


class DatabaseFile:
    """One database file, named by an absolute path."""

    def __init__(self, path: str) -> None:
        self.path = str(Path(path).absolute())
        self._wal = ""
        self._known: Identity | None = None
        self._known_wal: Identity | None = None

    def create(self) -> None:
        """Make the file where there is none, readable by its owner alone. Raises StoreError with a sentence."""
        path = Path(self.path)
        if path.is_dir():
            raise StoreError(f"{path} is a folder. Name a file in it, such as {path}/tenure.db.")
        if not path.parent.is_dir():
            raise StoreError(f"{path} can't be made: the folder {path.parent} doesn't exist. Make it first.")
        with _creating:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                self._check_rights(path)
            except OSError as error:
                raise _not_made(self.path, error) from error

    def _check_rights(self, path: Path) -> None:
        """SQLite says of a read-only folder only that it can't open the file; here the reason is still known."""
        for place, what in ((path, "file"), (path.parent, "folder")):
            if not os.access(place, os.R_OK | os.W_OK):
                raise StoreReadOnly(
                    f"{path} can't be written: the {what} {place} is read-only for this user. Give it write permission "
                    f"there, and check that the file system is not mounted read-only."
                )

    def identity(self) -> Identity | None:
        """Which file it is now; None where there is none."""
        return _identity(self.path)

    def settle(self) -> None:
        """Remember which file it is, and which log: while a connection of ours has read, neither may change."""
        known = _identity(self.path)
        if known is None or self._known not in (None, known):
            raise gone(self.path)
        self._wal = os.path.realpath(self.path) + "-wal"  # SQLite follows links before it names the log
        self._known, self._known_wal = known, _identity(self._wal)

    def check(self) -> None:
        """Raise StoreGone where the file or its log was deleted or replaced. A few microseconds."""
        if _identity(self.path) != self._known or _identity(self._wal) != self._known_wal:
            raise gone(self.path)

    def check_main(self) -> None:
        """As `check`, but for the log: for reads, and before a connection is made, when there may be none."""
        if _identity(self.path) != self._known:
            raise gone(self.path)

    def network(self) -> str | None:
        """The type of the network file system that the file is on; None where it is on this machine."""
        kind = mounted_as(os.path.realpath(self.path), _mounts())
        remote = kind in _NETWORK or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
        return kind if remote else None


def mounted_as(path: str, mounts: str) -> str:
    """The file system's type at `path`, by a table such as /proc/self/mounts; "" where it does not tell."""
    best, kind = "", ""
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = parts[1].encode().decode("unicode_escape").rstrip("/")
        inside = path == point or path.startswith(point + "/")
        if inside and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind


def _mounts() -> str:
    try:
        return MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return ""  # no Linux: nothing is known, and nothing is refused


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat takes three times as long, and this is asked at every call
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be looked at: {error.strerror}. Check the disk.") from error
    return found.st_dev, found.st_ino


def _not_made(path: str, error: OSError) -> StoreError:
    said = f"{path} can't be made: {error.strerror}."
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return StoreReadOnly(f"{said} Give this user write permission on the folder, or name another one.")
    if error.errno == errno.ENOSPC:
        return StoreFull(f"{said} Free some space on that file system.")
    return StoreUnavailable(f"{said} Check the folder and the number of open files.")
