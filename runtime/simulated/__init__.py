"""Simulated counterparts of `runtime`'s rooms: clock, disk, links and requests, with faults.

Rule: the seed alone determines a run. Nothing here reads a real clock, or iterates over a set or
anything else whose order depends on a hash. So a seed gives the same trace on every machine and
under every `PYTHONHASHSEED`. For tests and benchmarks only; no other package may import it.

    time        world (the heap of events), clock, machine (the clocks of one machine)
    nodes       host, process
    disk        disk, platter (what a loss of power leaves), disk_faults (errors and delays)
    network     network (loses, delays, repeats and cuts), links, requests
    faults      nemesis draws faults by a schedule of fault_schedules; crash_faults, network_faults,
                device_faults and damage_faults inject them with what fault_injector offers;
                targeted_faults and triggered_fault wait for an operation
"""
