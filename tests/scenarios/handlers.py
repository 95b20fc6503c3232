"""The commands of the scenarios: one function each, from its words to the lines that it prints.

`name=value` words are options; all others are arguments. A command prints what a reader of the
scenario wants to know, and nothing that depends on random numbers.
"""

from metadata.codec import decode_records
from metadata.messages import WantedState
from metadata.records import (
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    RequestOutcomeRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.unit.controller.cluster import Broker, Cluster


class Scenario:
    """The state of one scenario: a cluster, its broker processes, what was shown of the log."""

    def __init__(self):
        self.cluster = None
        self.brokers = {}
        self.shown = 0
        self.names = {}

    def run(self, line):
        """Carry out one command; returns the lines that it prints."""
        name, *words = line.split()
        arguments = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        return list(COMMANDS[name](self, *arguments, **options))


COMMANDS = {}


def command(function):
    COMMANDS[function.__name__.rstrip("_")] = function
    return function


# -- the cluster ------------------------------------------------------------------------------


@command
def cluster(scenario, controllers="3", **config):
    """Start controllers; controller 1 leads. Options are settings (`session_s=9`)."""
    numbers = {k: float(v) if "." in v or k.endswith("_s") else int(v) for k, v in config.items()}
    scenario.cluster = Cluster(nodes=int(controllers), **numbers)
    scenario.shown = scenario.cluster.image.offset
    yield f"controller {scenario.cluster.shared.leader} leads epoch {scenario.cluster.shared.epoch}"


@command
def lead(scenario, node):
    """Another controller is elected."""
    scenario.cluster.lead(int(node))
    yield f"controller {node} leads epoch {scenario.cluster.shared.epoch}"


@command
def stop(scenario, node):
    """A controller's process is killed."""
    scenario.cluster.kill(int(node))
    return ()


@command
def start(scenario, node):
    """A controller's process is started again, and catches up."""
    scenario.cluster.start(int(node))
    scenario.cluster.run(1.0)
    return ()


@command
def pause(scenario, node, seconds):
    """Pause a controller's process for a while."""
    process = scenario.cluster.processes[int(node)]
    process.pause()
    scenario.cluster.run(float(seconds))
    process.resume()
    scenario.cluster.run(0.2)
    return ()


@command
def agree(scenario):
    """All controllers hold the same log and state, and replaying the log gives that state."""
    scenario.cluster.assert_equal()
    yield "one log, one state"


# -- brokers ------------------------------------------------------------------------------------


@command
def online(scenario, *broker_ids, rack=None):
    """Start broker processes and bring them online."""
    for broker_id in map(int, broker_ids):
        broker = scenario.brokers[broker_id] = Broker(scenario.cluster, broker_id, rack=rack)
        broker.bring_online()
        yield f"{broker_id} {broker.last.state}"


@command
def register(scenario, broker_id, same=None):
    """Register a new process (or the `same` one), and print the answer."""
    broker_id = int(broker_id)
    old = scenario.brokers.get(broker_id)
    broker = Broker(scenario.cluster, broker_id, incarnation=old.incarnation if same else None)
    reply = broker.fetch(WantedState.FENCED)
    if reply.error is not None:
        yield reply.error.code
        return
    again = old is not None and old.epoch == broker.epoch
    scenario.brokers[broker_id] = broker
    yield f"{broker_id} {reply.state}, {'the same' if again else 'a new'} epoch"


@command
def beat(scenario, *broker_ids, wanted="online", applied="yes"):
    """Each broker fetches until it has everything, saying what it wants to be."""
    for broker_id in map(int, broker_ids):
        broker = scenario.brokers[broker_id]
        for _ in range(3):
            reply = broker.fetch(WantedState(wanted), apply=applied == "yes")
            scenario.cluster.run(0.05)
        if reply.error is not None:
            yield f"{broker_id} {reply.error.code}"
        else:
            yield f"{broker_id} {reply.state}{', may stop' if reply.may_stop else ''}"


@command
def wait(scenario, seconds, alive="", stopping=""):
    """Time passes; the brokers named heartbeat, all others are silent."""
    until = scenario.cluster.world.now + float(seconds)
    while scenario.cluster.world.now < until:
        for names, wanted in ((alive, "online"), (stopping, "stopping")):
            for broker_id in filter(None, names.split(",")):
                scenario.brokers[int(broker_id)].fetch(WantedState(wanted))
        scenario.cluster.run(min(1.0, max(until - scenario.cluster.world.now, 0.001)))
    return ()


@command
def brokers(scenario):
    """Print all brokers and their states, as in an answer."""
    _, reply = scenario.cluster.ask("GET", "/v1/brokers")
    for broker in reply["brokers"]:
        flag = ", leaving" if broker["inControlledShutdown"] else ""
        leads = f", leads {broker['leaders']}" if broker["leaders"] else ""
        yield f"{broker['brokerId']} {broker['state']}{flag}{leads}"


@command
def unregister(scenario, broker_id, dry=None, force=None):
    """Forget a broker."""
    query = {"dryRun": "true"} if dry else {}
    if force:
        query["force"] = "true"
    status, reply = scenario.cluster.ask("DELETE", f"/v1/brokers/{broker_id}", query=query)
    yield str(status) if status == 200 else f"{status} {reply['code']}"
    for record in reply.get("records", ()):
        yield f"would write {record['type']}"


# -- topics -------------------------------------------------------------------------------------


@command
def assign(scenario, name, *rows):
    """Create a topic with these replica lists, one word a partition: `1,2,3`."""
    scenario.cluster.assign(name, *[[int(b) for b in row.split(",")] for row in rows])
    yield from partitions(scenario, name)


@command
def create(scenario, name, partitions="1", factor="1", dry=None):
    """Create a topic."""
    topic = {"name": name, "numPartitions": int(partitions), "replicationFactor": int(factor)}
    body = {"topics": [topic], "dryRun": bool(dry)}
    status, reply = scenario.cluster.ask("POST", "/v1/topics", body)
    yield str(status) if status == 200 else f"{status} {reply['code']}"
    for record in reply.get("records", ()):
        yield f"would write {record['type']}"


@command
def delete(scenario, name):
    """Delete a topic."""
    status, reply = scenario.cluster.ask("DELETE", f"/v1/topics/{name}")
    yield str(status) if status == 200 else f"{status} {reply['code']}"


@command
def topics(scenario):
    """All topics."""
    _, reply = scenario.cluster.ask("GET", "/v1/topics")
    for topic in reply["topics"]:
        yield f"{topic['name']} x{topic['partitionCount']}"


@command
def partitions(scenario, name):
    """A topic's partitions."""
    status, reply = scenario.cluster.ask("GET", f"/v1/topics/{name}")
    if status != 200:
        yield f"{status} {reply['code']}"
        return
    for p in reply["topics"][0]["partitions"]:
        isr = ",".join(map(str, p["isr"]))
        yield (
            f"{name}-{p['partition']} leader {p['leader']} isr {isr} "
            f"leader epoch {p['leaderEpoch']} partition epoch {p['partitionEpoch']}"
        )


# -- the log ------------------------------------------------------------------------------------


@command
def log(scenario):
    """What was written since the last look: one line a batch, who and why, then its records."""
    for batch in scenario.cluster.batches():
        if batch.header.base_offset < scenario.shown:
            continue
        p = batch.header.provenance
        who = p.principal + (f" as {batch.header.acted_as}" if batch.header.acted_as else "")
        yield f"{who} {p.operation}{': ' if p.reason else ''}{p.reason}"
        for record in decode_records(batch.records):
            if isinstance(record, TopicRecord):
                scenario.names[record.topic_id] = record.name
            yield f"  {_in_words(scenario, record)}"
    scenario.shown = scenario.cluster.image.offset


def _in_words(scenario, record):
    match record:
        case RegisterBrokerRecord():
            return f"register {record.broker_id}"
        case UnregisterBrokerRecord():
            return f"unregister {record.broker_id}"
        case BrokerRegistrationChangeRecord():
            flags = {1: "fence", -1: "unfence", 0: ""}[record.fenced]
            leaving = "begin to stop" if record.in_controlled_shutdown else ""
            return f"{flags}{leaving} {record.broker_id}"
        case TopicRecord():
            return f"topic {record.name}"
        case PartitionRecord():
            return f"partition {scenario.names[record.topic_id]}-{record.partition_id}"
        case PartitionChangeRecord():
            name = f"{scenario.names[record.topic_id]}-{record.partition_id}"
            leader = f" leader {record.leader}" if record.leader != -2 else ""
            isr = f" isr {','.join(map(str, record.isr))}" if record.isr is not None else ""
            return f"change {name}{leader}{isr}"
        case RemoveTopicRecord():
            return f"remove {scenario.names[record.topic_id]}"
        case BeginEpochRecord():
            return f"controller {record.leader_id} begins its epoch"
        case RequestOutcomeRecord():
            return "outcome"
        case _:
            return type(record).__name__
