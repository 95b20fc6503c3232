"""How much memory a process has in use, as Linux tells it."""

from pathlib import Path


def resident_bytes(pid: int) -> int:
    """How much memory a process has in use now."""
    return _status_kib(pid, "VmRSS") * 1024


def peak_bytes(pid: int) -> int:
    """The most memory that a process had in use since `forget_peak`."""
    return _status_kib(pid, "VmHWM") * 1024


def forget_peak(pid: int) -> None:
    """Let the kernel count the peak from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status_kib(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise ValueError(f"/proc/{pid}/status has no {field}")
