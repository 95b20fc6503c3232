"""The kinds of seeds of the simulated cluster: which faults each has, and how often.

Rule: a seed's kind never changes, so that a seed that found something stays one. So no kind is
added to `KINDS`, and the order there stays.
"""

from runtime.simulated.fault_schedules import (
    CRASHES,
    CUTS,
    DISKS,
    LATE,
    NOISE,
    PAUSES,
    FaultSchedule,
)

KINDS: dict[str, FaultSchedule] = {
    "everything": FaultSchedule({**CRASHES, **PAUSES, **CUTS, **DISKS, **NOISE, "wall_jump": 0.5}),
    "power": FaultSchedule(
        {"power": 6.0, "kill_at_step": 3.0, "kill_leader": 2.0, "isolate_leader": 1.0},
        gap_s=(0.3, 2.0),
        length_s=(0.05, 2.0),
    ),
    "cuts": FaultSchedule({**CUTS, **NOISE, **PAUSES}, gap_s=(0.2, 1.5), length_s=(0.2, 5.0)),
    "lag": FaultSchedule(
        {"kill": 3.0, "power": 2.0, "isolate_leader": 2.0, "slow_disk": 2.0},
        gap_s=(0.5, 3.0),
        length_s=(1.0, 8.0),
    ),
}


MORE_KINDS: dict[str, FaultSchedule | None] = {
    "full": FaultSchedule(
        {"full_disk": 3.0, "full_disks": 3.0, "kill": 2.0, "power": 1.0, "isolate_leader": 1.0},
        gap_s=(0.2, 1.5),
        length_s=(0.2, 4.0),
    ),
    "errors": FaultSchedule(
        {"disk_error": 5.0, "kill": 1.0, "power": 1.0, "isolate_leader": 1.0},
        gap_s=(0.2, 1.5),
        length_s=(0.2, 4.0),
    ),
    "stranded": FaultSchedule(
        {"stranded_leader": 4.0, "pause_leader": 1.0, "kill": 1.0, **NOISE},
        gap_s=(0.3, 2.0),
        length_s=(0.3, 6.0),
    ),
    "rivals": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 2.0, "wall_jump": 0.5},
        gap_s=(0.2, 2.0),
        length_s=(0.1, 4.0),
    ),
    "conditions": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 2.0, "wall_jump": 0.5},
        gap_s=(0.2, 2.0),
        length_s=(0.1, 4.0),
    ),
    "configs": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "full_disk": 0.5},
        gap_s=(0.3, 2.5),
        length_s=(0.1, 3.0),
    ),
    "clients": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "full_disk": 0.5},
        gap_s=(0.3, 2.5),
        length_s=(0.1, 3.0),
    ),
    "erasures": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "kill_at_start": 1.0, "stranded_leader": 1.0},
        gap_s=(0.3, 2.5),
        length_s=(0.1, 3.0),
    ),
    "kafka": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "kill_at_start": 1.0},
        gap_s=(0.3, 2.5),
        length_s=(0.1, 3.0),
    ),
    "combined": FaultSchedule(
        {
            **CRASHES,
            **PAUSES,
            **CUTS,
            **NOISE,
            "stranded_leader": 1.0,
            "kill_at_start": 1.0,
            "full_disk": 2.0,
            "disk_error": 2.0,
        },
        gap_s=(0.5, 4.0),
        length_s=(0.1, 3.0),
    ),
    "drawn": None,
    "damage": None,
    "hunt": None,
    "twins": FaultSchedule(
        {"kill_leader": 2.0, "pause_leader": 2.0, "isolate_leader": 2.0, "one_way": 1.0, **NOISE},
        gap_s=(0.5, 3.0),
        length_s=(0.3, 5.0),
    ),
    "replicas": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "moves": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "forgets": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "crowd": FaultSchedule(
        {"kill_leader": 4.0, "kill": 1.0}, gap_s=(0.5, 3.0), length_s=(0.1, 2.0)
    ),
    "releases": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "full_disk": 0.5},
        gap_s=(0.3, 2.0),
        length_s=(0.1, 3.0),
    ),
    "imports": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, **LATE, "stranded_leader": 1.0},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "sessions": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, **LATE, "wall_jump": 0.5, "stranded_leader": 1.0},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "voters": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "full_disk": 0.5},
        gap_s=(0.3, 2.5),
        length_s=(0.1, 3.0),
    ),
    "archive": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "full_disk": 0.5, "disk_error": 0.5},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "heads": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, "stranded_leader": 1.0, "full_disk": 0.5},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
    "rights": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, **LATE, "stranded_leader": 2.0},
        gap_s=(0.2, 2.0),
        length_s=(0.1, 4.0),
    ),
    "standbys": FaultSchedule(
        {**CRASHES, **PAUSES, **CUTS, **NOISE, **LATE, "wall_jump": 0.5, "clock_rate": 0.2},
        gap_s=(0.3, 3.0),
        length_s=(0.1, 4.0),
    ),
}
"""Asked for by name. None: the seed draws shape and faults."""
