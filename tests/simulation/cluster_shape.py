"""What kind of cluster a run has, and how much happens in it."""

from dataclasses import dataclass

from runtime.simulated.disk_faults import FAST, DiskProfile


@dataclass
class Shape:
    """What kind of cluster, and how much happens in it."""

    controllers: int = 3
    brokers: int = 3
    faults_s: float = 20.0
    session_s: float = 3.0
    heartbeat_s: float = 0.5
    changes_per_s: float = 6.0
    reads_per_s: float = 4.0
    topics_max: int = 1_000_000
    batch_bytes: int = 0
    """Decisions over this become transactions of several batches; 0: as the product has it."""
    large_topics: int = 0
    """One topic in so many has twelve partitions; 0: none has."""
    slice_us: int = 0
    """Long work is done step by step, each of them so long; 0: all of it takes no time."""
    mutations_per_s: int = 0
    """The quota for changes of partitions, and twice as much for a burst; 0: the default."""
    rivals: int = 0
    """Clients who contend for a few names, and read in every way."""
    conditional: bool = False
    """Their changes are conditional on what they read last."""
    old_release: bool = False
    """Release 0.1 began the log, and nodes are upgraded one by one (see `releases`)."""
    wrong_keys: bool = False
    """Controller 1 has a wrong cluster key in each second life. Others must be able to lead."""
    low_levels: bool = False
    """The log begins at the levels of release 0.1, and clients raise them while faults strike."""
    configurers: bool = False
    """Administrators who alter configs, which elections and reads follow."""
    clients: bool = False
    """Administrators of entries, quotas, credentials, tokens and producer ids (see `clients`)."""
    erasing: bool = False
    """With `clients`: some of them erase users (see `erasing`)."""
    sealed_addresses: bool = False
    """The leader seals the addresses of callers."""
    pseudonyms: bool = False
    """People whose names end with `PEOPLE` have pseudonyms (see `erasing`)."""
    session_clients: bool = False
    """Clients with sessions, who contend for locks and elections (see `session_clients`)."""
    importer: bool = False
    """An administrator who imports keys, also in parts (see `importers`)."""
    duplicate_brokers: bool = False
    """Second processes for brokers' ids."""
    replicated: bool = False
    """Topics have three replicas; leaders change ISRs, and elections are held (see `replicas`)."""
    crowd: bool = False
    """Many brokers for the bounds that the controllers have (see `crowds`)."""
    combined: bool = False
    """Each controller's process runs a broker's agent too (see `combined`); `brokers` doesn't
    count."""
    standbys: bool = False
    """Agents send heartbeats to standbys, which forward them (ADR 0048)."""
    moved: bool = False
    """Partitions are added and reassigned, too (see `movers`)."""
    joined: bool = False
    """Administrators' changes go many in one request (see `joined_requests`)."""
    forgotten: bool = False
    """Brokers are unregistered, also by force (see `unregistering`)."""
    first_voters: tuple[int, ...] = ()
    """The controllers that vote at first, and the voters change (see `voter_requests`); empty: all
    vote, for good."""
    kafka: bool = False
    """Observers fetch the log as Kafka's brokers do (see `kafka_observers`)."""
    bridged: bool = False
    """A source leads now and then (see `bridging`); nothing else changes topics then."""
    rights: bool = False
    """Rights are enforced, and users use them while they are granted and revoked (see
    `right_seekers`)."""
    archived: bool = False
    """Segments of the log move to an archive, of which nothing stays here (see `archiving`)."""
    heads: bool = False
    """Controllers sign heads, keys rotate, and one key is stolen (see `signed_heads`)."""
    checkpoint_bytes: int = 20_000
    tail_bytes: int = 8_000
    segment_bytes: int = 16_000
    scrub_s: float = 86_400.0
    broker_fault_schedule: float = 0.4
    """How often, in each second, something happens to some broker; 0: nothing ever does."""
    disks: tuple[DiskProfile, ...] = (FAST,)
    """Each controller draws one of these; it is fast once the faults have ended."""
