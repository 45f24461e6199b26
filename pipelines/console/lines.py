"""The lines about a stage that people read, in the terminal, in logs and in `cppmill status`."""

from __future__ import annotations

from pipelines.console.progress import MEGABYTE, Meter, Summary
from schemas.printing import count


def progress_line(meter: Meter, columns: int | None = None) -> str:
    """Return the progress of a running stage.

    Args:
        meter: The stage.
        columns: How long the line may be: units are left out first, then megabytes, then the rate, never the time left.

    Example:
        >>> progress_line(Meter("scan", 4, 100_000_000), 40)
        'scan: 0.0 of 100.0 MB, 0.0 MB/s'
    """
    parts = _amounts(
        meter.done_units, meter.units, meter.done_bytes, meter.num_bytes, bytes_per_second=meter.bytes_per_second
    )
    left = describe_time_left(meter.eta_seconds)
    lines = [f"{meter.stage}: {', '.join(parts[first:])}{left}" for first in range(len(parts))]
    shortest = f"{meter.stage}{left}"
    return next((line for line in lines if columns is None or len(line) <= columns), shortest)


def describe_amounts(done_units: int, units: int, done_bytes: int, num_bytes: int, *, bytes_per_second: float) -> str:
    """Return how much of a stage is done.

    Example:
        >>> describe_amounts(1, 4, 25_000_000, 100_000_000, bytes_per_second=5e6)
        '1 of 4 units, 25.0 of 100.0 MB, 5.0 MB/s'
    """
    return ", ".join(_amounts(done_units, units, done_bytes, num_bytes, bytes_per_second=bytes_per_second))


def _amounts(done_units: int, units: int, done_bytes: int, num_bytes: int, *, bytes_per_second: float) -> list[str]:
    """Return units, and megabytes and rate if there are bytes."""
    found = [f"{done_units:,} of {count(units, 'unit')}"]
    if num_bytes:
        found.append(f"{done_bytes / MEGABYTE:,.1f} of {num_bytes / MEGABYTE:,.1f} MB")
        found.append(f"{bytes_per_second / MEGABYTE:,.1f} MB/s")
    return found


def describe_time_left(eta_seconds: float | None) -> str:
    """Return the end of a progress line; empty while the time left is unknown."""
    return "" if eta_seconds is None else f", {format_seconds(eta_seconds)} left"


def start_line(meter: Meter) -> str:
    """Return the line that begins a stage."""
    return f"{meter.stage}: {count(meter.units, 'unit')}, {meter.num_bytes / MEGABYTE:,.1f} MB to do"


def done_line(meter: Meter, seconds: float, summary: Summary) -> str:
    """Return the line that ends a stage.

    Args:
        meter: The stage.
        seconds: How long it took.
        summary: What it made.
    """
    if meter.units == 0:
        text = f"{meter.stage}: nothing to do, every unit is up to date"
    else:
        rate = f", {meter.num_bytes / MEGABYTE / seconds:,.1f} MB/s" if meter.num_bytes and seconds > 0 else ""
        text = f"{meter.stage}: {count(meter.units, 'unit')} in {format_seconds(seconds)}{rate}"
    return f"{text} ({format_summary(summary)})" if summary else text


def format_seconds(seconds: float) -> str:
    """Return a duration for people.

    Example:
        >>> format_seconds(3.21), format_seconds(75), format_seconds(7500)
        ('3.2 s', '1 min 15 s', '2 h 05 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def format_summary(summary: Summary) -> str:
    """Return a summary in words.

    Example:
        >>> format_summary({"documents": 5482, "bytes": 330_100_000, "tokenizer": "kept"})
        '5,482 documents, 330.1 MB, tokenizer kept'
    """
    return ", ".join(_format_entry(name.replace("_", " "), value) for name, value in summary.items())


def _format_entry(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return f"{name} {value}"
    if name == "bytes" or name.endswith(" bytes"):
        return f"{name.removesuffix('bytes')}{value / MEGABYTE:,.1f} MB"
    if not isinstance(value, int):
        return f"{value:,.4g} {name}"
    noun, _, rest = name.partition(" ")
    return f"{value:,} {name}" if value != 1 or not noun.endswith("s") else f"1 {noun[:-1]} {rest}".rstrip()
