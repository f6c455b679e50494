"""A file system of its own that can be full: a tmpfs, where this machine lets us mount one."""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile


@functools.cache
def can_mount():
    """Whether one can be had: root, with the right to mount."""
    if not shutil.which("mount") or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
        return done.returncode == 0


@contextlib.contextmanager
def mounted(folder, size):
    """The folder, with a file system of this size of its own."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def remount(folder, option):
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)
