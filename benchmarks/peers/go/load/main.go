// Command load drives one metadata service with one kind of work, and prints what it measured as
// one line of JSON.
//
// The services implement the same interface, so that every row of the comparison is driven by the
// same code. The processor time of the nodes is read from /proc at the same two moments as the clock.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A service is what the rows need from Logberg, etcd, ZooKeeper and KRaft.
type service interface {
	// prepare does once what creations need, such as brokers that replicas can be placed on.
	prepare(ctx context.Context) error
	// create adds an entry that must not exist yet, and returns when it is durable.
	create(ctx context.Context, worker int, name string) error
	// read returns an entry; a stale read may come from any state that the node has.
	read(ctx context.Context, worker int, name string, stale bool) error
	// createMany adds entries in the service's own bulk requests. It returns how many entries the
	// largest all-or-nothing request held.
	createMany(ctx context.Context, prefix string, count int) (int, error)
	// join makes a broker known and returns its heartbeat.
	join(ctx context.Context, broker int) (func(ctx context.Context) error, error)
	// watch begins to watch one entry; each call of the returned function waits for its next change.
	watch(ctx context.Context, watcher int) (func(ctx context.Context) error, error)
	// change changes the entry that the watchers watch.
	change(ctx context.Context, number int) error
}

// A driven work reports what it measured.
type result map[string]any

// collectBeyond is the memory that the load may use before its garbage collector runs. A collection
// takes both processors for 0.15 s with ten thousand connections: it measured itself, not the service.
const collectBeyond = 3 << 30

func main() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectBeyond)
	target := flag.String("target", "", "logberg, etcd, zookeeper or kraft")
	work := flag.String("work", "", "leader, create, read, beats, bulk, brokers, takeover, watch or failover")
	endpoints := flag.String("endpoints", "", "of all nodes, the leader first, separated by commas")
	pids := flag.String("pids", "", "processes whose processor time is counted")
	workers := flag.Int("workers", 1, "requests outstanding, brokers or watchers")
	seconds := flag.Float64("seconds", 3, "how long to measure")
	warm := flag.Float64("warm", 1, "seconds of the same work before the measurement")
	gate := flag.Int("gate", 64, "brokers that register at once")
	count := flag.Int("count", 1000, "entries, or changes to be watched")
	stale := flag.Bool("stale", false, "read any state that the node has")
	signal := flag.String("signal", "KILL", "what the failover sends to the first pid")
	prefix := flag.String("prefix", "t", "of the names of entries")
	flag.Parse()

	asked := settings{
		workers: *workers, count: *count, gate: *gate, stale: *stale, signal: *signal, prefix: *prefix,
		seconds: inSeconds(*seconds), warm: inSeconds(*warm),
	}
	for _, pid := range strings.Split(*pids, ",") {
		if number, err := strconv.Atoi(pid); err == nil {
			asked.pids = append(asked.pids, number)
		}
	}
	measured, err := drive(*target, *work, strings.Split(*endpoints, ","), asked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	measured["ownCpu"] = cpuSeconds([]int{os.Getpid()})
	if err := json.NewEncoder(os.Stdout).Encode(measured); err != nil {
		os.Exit(1)
	}
}

func drive(target, work string, endpoints []string, asked settings) (result, error) {
	connect, known := map[string]func([]string, settings) (service, error){
		"logberg": newLogberg, "etcd": newEtcd, "zookeeper": newZooKeeper, "kraft": newKraft,
	}[target]
	if !known {
		return nil, fmt.Errorf("no service is named %q", target)
	}
	if work == "leader" {
		leader, err := leaderOf[target](context.Background(), endpoints)
		return result{"leader": leader}, err
	}
	if work == "failover" {
		// A client that knows only the survivors, connected before the leader is lost.
		survivors, err := connect(endpoints[1:], asked)
		if err != nil {
			return nil, err
		}
		leader, err := connect(endpoints, asked)
		if err != nil {
			return nil, err
		}
		return runFailover(leader, survivors, asked)
	}
	run, known := map[string]func(service, settings) (result, error){
		"create": runCreate, "read": runRead, "beats": runBeats, "bulk": runBulk,
		"brokers": runBrokers, "takeover": runTakeover, "watch": runWatch,
	}[work]
	if !known {
		return nil, fmt.Errorf("no work is named %q", work)
	}
	service, err := connect(endpoints, asked)
	if err != nil {
		return nil, err
	}
	if err := service.prepare(context.Background()); err != nil {
		return nil, err
	}
	return run(service, asked)
}

func inSeconds(value float64) time.Duration { return time.Duration(value * float64(time.Second)) }
