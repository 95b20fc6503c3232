"""The commands of the stories: one function each, from its words to the lines that it prints.

`name=value` words are options; all others are arguments. A command prints what a reader of the
story wants to know, and nothing that hangs on dice.
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


class Story:
    """The state of one story: a cluster, its broker processes, what was shown of the log."""

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
def cluster(story, controllers="3", **config):
    """Start controllers; controller 1 leads. Options are settings (`session_s=9`)."""
    numbers = {k: float(v) if "." in v or k.endswith("_s") else int(v) for k, v in config.items()}
    story.cluster = Cluster(nodes=int(controllers), **numbers)
    story.shown = story.cluster.image.offset
    yield f"controller {story.cluster.shared.leader} leads epoch {story.cluster.shared.epoch}"


@command
def lead(story, node):
    """Another controller is elected."""
    story.cluster.lead(int(node))
    yield f"controller {node} leads epoch {story.cluster.shared.epoch}"


@command
def stop(story, node):
    """A controller's process is killed."""
    story.cluster.kill(int(node))
    return ()


@command
def start(story, node):
    """A controller's process is started again, and catches up."""
    story.cluster.start(int(node))
    story.cluster.run(1.0)
    return ()


@command
def pause(story, node, seconds):
    """A controller's process stands still, and goes on."""
    process = story.cluster.processes[int(node)]
    process.pause()
    story.cluster.run(float(seconds))
    process.resume()
    story.cluster.run(0.2)
    return ()


@command
def agree(story):
    """All controllers hold the same log and state, and replaying the log gives that state."""
    story.cluster.assert_equal()
    yield "one log, one state"


# -- brokers ------------------------------------------------------------------------------------


@command
def online(story, *broker_ids, rack=None):
    """Start broker processes and bring them online."""
    for broker_id in map(int, broker_ids):
        broker = story.brokers[broker_id] = Broker(story.cluster, broker_id, rack=rack)
        broker.bring_online()
        yield f"{broker_id} {broker.last.state}"


@command
def register(story, broker_id, same=None):
    """A new process (or the `same` one) registers, and is told what became of it."""
    broker_id = int(broker_id)
    old = story.brokers.get(broker_id)
    broker = Broker(story.cluster, broker_id, incarnation=old.incarnation if same else None)
    reply = broker.fetch(WantedState.FENCED)
    if reply.error is not None:
        yield reply.error.code
        return
    again = old is not None and old.epoch == broker.epoch
    story.brokers[broker_id] = broker
    yield f"{broker_id} {reply.state}, {'the same' if again else 'a new'} epoch"


@command
def beat(story, *broker_ids, wanted="online", applied="yes"):
    """Each broker fetches until it has everything, saying what it wants to be."""
    for broker_id in map(int, broker_ids):
        broker = story.brokers[broker_id]
        for _ in range(3):
            reply = broker.fetch(WantedState(wanted), apply=applied == "yes")
            story.cluster.run(0.05)
        if reply.error is not None:
            yield f"{broker_id} {reply.error.code}"
        else:
            yield f"{broker_id} {reply.state}{', may stop' if reply.may_stop else ''}"


@command
def wait(story, seconds, alive="", stopping=""):
    """Time passes; the brokers named heartbeat, all others are silent."""
    until = story.cluster.world.now + float(seconds)
    while story.cluster.world.now < until:
        for names, wanted in ((alive, "online"), (stopping, "stopping")):
            for broker_id in filter(None, names.split(",")):
                story.brokers[int(broker_id)].fetch(WantedState(wanted))
        story.cluster.run(min(1.0, max(until - story.cluster.world.now, 0.001)))
    return ()


@command
def brokers(story):
    """All brokers and their states, as anybody is told."""
    _, reply = story.cluster.ask("GET", "/v1/brokers")
    for broker in reply["brokers"]:
        flag = ", leaving" if broker["inControlledShutdown"] else ""
        leads = f", leads {broker['leaders']}" if broker["leaders"] else ""
        yield f"{broker['brokerId']} {broker['state']}{flag}{leads}"


@command
def unregister(story, broker_id, dry=None, force=None):
    """Forget a broker."""
    query = {"dryRun": "true"} if dry else {}
    if force:
        query["force"] = "true"
    status, reply = story.cluster.ask("DELETE", f"/v1/brokers/{broker_id}", query=query)
    yield str(status) if status == 200 else f"{status} {reply['code']}"
    for record in reply.get("records", ()):
        yield f"would write {record['type']}"


# -- topics -------------------------------------------------------------------------------------


@command
def assign(story, name, *rows):
    """Create a topic with these replica lists, one word a partition: `1,2,3`."""
    story.cluster.assign(name, *[[int(b) for b in row.split(",")] for row in rows])
    yield from partitions(story, name)


@command
def create(story, name, partitions="1", factor="1", dry=None):
    """Create a topic."""
    topic = {"name": name, "numPartitions": int(partitions), "replicationFactor": int(factor)}
    body = {"topics": [topic], "dryRun": bool(dry)}
    status, reply = story.cluster.ask("POST", "/v1/topics", body)
    yield str(status) if status == 200 else f"{status} {reply['code']}"
    for record in reply.get("records", ()):
        yield f"would write {record['type']}"


@command
def delete(story, name):
    """Delete a topic."""
    status, reply = story.cluster.ask("DELETE", f"/v1/topics/{name}")
    yield str(status) if status == 200 else f"{status} {reply['code']}"


@command
def topics(story):
    """All topics."""
    _, reply = story.cluster.ask("GET", "/v1/topics")
    for topic in reply["topics"]:
        yield f"{topic['name']} x{topic['partitionCount']}"


@command
def partitions(story, name):
    """A topic's partitions."""
    status, reply = story.cluster.ask("GET", f"/v1/topics/{name}")
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
def log(story):
    """What was written since the last look: one line a batch, who and why, then its records."""
    for batch in story.cluster.batches():
        if batch.header.base_offset < story.shown:
            continue
        p = batch.header.provenance
        who = p.principal + (f" as {batch.header.acted_as}" if batch.header.acted_as else "")
        yield f"{who} {p.operation}{': ' if p.reason else ''}{p.reason}"
        for record in decode_records(batch.records):
            if isinstance(record, TopicRecord):
                story.names[record.topic_id] = record.name
            yield f"  {_in_words(story, record)}"
    story.shown = story.cluster.image.offset


def _in_words(story, record):
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
            return f"partition {story.names[record.topic_id]}-{record.partition_id}"
        case PartitionChangeRecord():
            name = f"{story.names[record.topic_id]}-{record.partition_id}"
            leader = f" leader {record.leader}" if record.leader != -2 else ""
            isr = f" isr {','.join(map(str, record.isr))}" if record.isr is not None else ""
            return f"change {name}{leader}{isr}"
        case RemoveTopicRecord():
            return f"remove {story.names[record.topic_id]}"
        case BeginEpochRecord():
            return f"controller {record.leader_id} begins its epoch"
        case RequestOutcomeRecord():
            return "outcome"
        case _:
            return type(record).__name__
