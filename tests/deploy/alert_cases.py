"""For each alert: series that fire it, and series near the limit that must not.

A case is written as promtool's own tests are: `1+1x5` is 1, 2, 3, …; `_` is a missing sample.
"""

from typing import NamedTuple

CONTROLLER = 'job="logberg-controllers", instance="c1:9191"'
AGENT = 'job="logberg-agents", instance="b1:9291"'
_SLOW = (  # a minute apart, a hundred observations each, all above a second
    'le="0.064"} 0+0x400',
    'le="2.5"} 0+100x400',
    'le="+Inf"} 0+100x400',
)
_QUICK = (
    'le="0.064"} 0+100x400',
    'le="2.5"} 0+100x400',
    'le="+Inf"} 0+100x400',
)


class AlertCase(NamedTuple):
    """Series of samples a minute apart, and the minute at which the alerts are asked for."""

    fires: tuple[str, ...]
    quiet: tuple[str, ...]
    at_minute: int = 10


def _buckets(name: str, rows: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}{{{CONTROLLER}, {row}" for row in rows)


def _one(name: str, firing: str, quiet: str, more: str = "", at_minute: int = 10) -> AlertCase:
    """One series of a controller, with the values that fire and those that don't."""
    return AlertCase(
        (f"{name}{{{CONTROLLER}{more}}} {firing}",),
        (f"{name}{{{CONTROLLER}{more}}} {quiet}",),
        at_minute,
    )


_DAY = 86_400
CASES: dict[str, AlertCase] = {
    "LogbergNoActiveController": _one("logberg_controller_active", "1 1 0x20", "1x20"),
    "LogbergNodeDown": _one("up", "1 1 0x20", "1x8 0 1x20"),
    "LogbergControllerNotServing": _one("logberg_controller_serving", "0x20", "1x8 0 1x20"),
    "LogbergVoterSilent": _one(
        "logberg_quorum_replica_heard_seconds", "0+10x20", "2x20", ', node_id="2"'
    ),
    "LogbergVoterLags": _one(
        "logberg_quorum_replica_lag_entries", "0+500x20", "900x20", ', node_id="2"'
    ),
    "LogbergLeaderChangesOften": _one("logberg_quorum_epoch", "1+1x20", "1 2 2 3x20"),
    "LogbergVersionsDiffer": AlertCase(
        (
            f'logberg_build_info{{{CONTROLLER}, version="1.0"}} 1x500',
            f'logberg_build_info{{{AGENT}, version="1.1"}} 1x500',
        ),
        (
            f'logberg_build_info{{{CONTROLLER}, version="1.1"}} 1x500',
            f'logberg_build_info{{{AGENT}, version="1.1"}} 1x500',
        ),
        400,
    ),
    "LogbergStateDiverged": _one("logberg_state_diverged", "0 1x20", "0x20"),
    "LogbergHeadContradicted": _one(
        "logberg_witness_contradicting", "0 1x20", "0x20", ', witness="w"'
    ),
    "LogbergHeadsUnwitnessed": AlertCase(
        (
            f"logberg_signed_head_unwitnessed_seconds{{{CONTROLLER}}} 61x20",
            f"logberg_witness_window_seconds{{{CONTROLLER}}} 60x20",
        ),
        (
            f"logberg_signed_head_unwitnessed_seconds{{{CONTROLLER}}} 59x20",
            f"logberg_witness_window_seconds{{{CONTROLLER}}} 60x20",
        ),
    ),
    "LogbergJournalDamaged": _one("logberg_quorum_journal_damaged", "0 1x20", "0x20"),
    "LogbergDamageFound": _one("logberg_damage_found_total", "0 0 1x20", "1x20", ', part="ledger"'),
    "LogbergScrubIsLate": _one(
        "logberg_scrub_last_full_pass_seconds", "60x6000", "60+60x6000", at_minute=3 * 1440 + 70
    ),
    "LogbergBackupFails": _one(
        "logberg_backup_looks_total", "0 0 1x20", "0x20", ', outcome="failed"'
    ),
    "LogbergDiskAlmostFull": AlertCase(
        (
            f"logberg_disk_free_bytes{{{CONTROLLER}}} 9x20",
            f"logberg_disk_size_bytes{{{CONTROLLER}}} 100x20",
        ),
        (
            f"logberg_disk_free_bytes{{{CONTROLLER}}} 11x20",
            f"logberg_disk_size_bytes{{{CONTROLLER}}} 100x20",
        ),
    ),
    "LogbergDiskFillsSoon": _one("logberg_disk_full_in_days", "6.5x100", "7.5x100", at_minute=90),
    "LogbergArchiveFails": _one("logberg_archive_failures_total", "0+1x20", "0 1 2x20"),
    "LogbergSlowSyncs": AlertCase(
        _buckets("logberg_disk_sync_seconds_bucket", _SLOW),
        _buckets("logberg_disk_sync_seconds_bucket", _QUICK),
    ),
    "LogbergLoopStalls": _one("logberg_loop_stalled_seconds_total", "0+6x20", "0+1x20"),
    "LogbergClockDiffers": _one("logberg_wall_clock_seconds", "3+60x20", "1+60x20"),
    "LogbergFewDescriptorsLeft": AlertCase(
        (
            f"process_open_fds{{{CONTROLLER}}} 81x20",
            f"process_max_fds{{{CONTROLLER}}} 100x20",
            f'logberg_build_info{{{CONTROLLER}, version="1.0"}} 1x20',
        ),
        # Another program's process is none of ours.
        (
            'process_open_fds{job="other", instance="o:1"} 99x20',
            'process_max_fds{job="other", instance="o:1"} 100x20',
            f'logberg_build_info{{{CONTROLLER}, version="1.0"}} 1x20',
        ),
    ),
    "LogbergCertificateExpires": _one(
        "logberg_certificate_expiry_seconds", f"{13 * _DAY}x20", f"{15 * _DAY}x20", ', file="cert"'
    ),
    "LogbergCertificateExpiresNow": _one(
        "logberg_certificate_expiry_seconds", f"{_DAY}x20", f"{3 * _DAY}x20", ', file="ca"'
    ),
    "LogbergBrokerNotServing": _one("logberg_broker_serving", "0x20", "1x8 0 1x20"),
    "LogbergLeaderlessPartitions": AlertCase(
        (
            f"logberg_leaderless_partitions{{{CONTROLLER}}} 3x20",
            f"logberg_controller_active{{{CONTROLLER}}} 1x20",
        ),
        # A standby that lags still counts what the active controller has mended.
        (
            'logberg_leaderless_partitions{job="logberg-controllers", instance="c2:9191"} 3x20',
            'logberg_controller_active{job="logberg-controllers", instance="c2:9191"} 0x20',
            f"logberg_leaderless_partitions{{{CONTROLLER}}} 0x20",
            f"logberg_controller_active{{{CONTROLLER}}} 1x20",
        ),
    ),
    "LogbergRequestsSlow": AlertCase(
        _buckets("logberg_controller_request_seconds_bucket", _SLOW),
        _buckets("logberg_controller_request_seconds_bucket", _QUICK),
    ),
    "LogbergConnectionsTurnedAway": _one(
        "logberg_connections_turned_away_total", "0+120x20", "0+30x20", ', door="http"'
    ),
    "LogbergStrangersKnock": _one(
        "logberg_refused_attempts_total",
        "0+120x60",
        "0+30x60",
        ', event="token_refused"',
        at_minute=40,
    ),
    "LogbergBackupOld": AlertCase(
        (
            f"logberg_backup_every_seconds{{{CONTROLLER}}} 3600x40",
            f"logberg_backup_age_seconds{{{CONTROLLER}}} 7230+60x40",
        ),
        (
            f"logberg_backup_every_seconds{{{CONTROLLER}}} 3600x40",
            f"logberg_backup_age_seconds{{{CONTROLLER}}} 7230+60x40",
            # Another controller knows of a newer one.
            'logberg_backup_age_seconds{job="logberg-controllers", instance="c2:9191"} 60+60x40',
        ),
        at_minute=20,
    ),
    "LogbergNoBackup": AlertCase(
        (f"logberg_backup_every_seconds{{{CONTROLLER}}} 3600x90",),
        (
            f"logberg_backup_every_seconds{{{CONTROLLER}}} 3600x90",
            f"logberg_backup_age_seconds{{{CONTROLLER}}} _x30 0+60x60",
        ),
        at_minute=80,
    ),
}
