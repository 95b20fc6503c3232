package main

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const patience = 60 * time.Second

// firstBroker keeps the brokers of this run apart from those of earlier ones, whose sessions may last.
var firstBroker = (1 + rand.IntN(200)) * 10_000_000

type settings struct {
	workers, count int
	gate           int
	seconds, warm  time.Duration
	stale          bool
	signal, prefix string
	pids           []int
}

// keptBroker is the first of the brokers that all runs on one cluster share.
const keptBroker = 1_000_000

// incarnation returns the id of a broker's process. A kept broker has the same one in each run: it is
// the same process that registers again. Otherwise those of the run before would be fenced in the midst
// of this one.
func incarnation(broker int) (id [16]byte) {
	if broker < firstBroker {
		binary.BigEndian.PutUint64(id[8:], uint64(broker))
	} else {
		_, _ = crand.Read(id[:])
	}
	id[1] |= 1 // Kafka reserves the smallest ids.
	return id
}

// keepBrokers registers some brokers that stay, so that topics have somewhere to be.
func keepBrokers(ctx context.Context, service service) error {
	for broker := range 3 {
		beat, err := service.join(ctx, keptBroker+broker)
		if err != nil {
			return err
		}
		go func() {
			for range time.Tick(time.Second) {
				_ = beat(context.Background())
			}
		}()
	}
	return nil
}

// runCreate keeps a number of creations outstanding, each of one entry.
func runCreate(service service, asked settings) (result, error) {
	var next atomic.Int64
	one := func(ctx context.Context, worker int) error {
		return service.create(ctx, worker, fmt.Sprintf("%s%d", asked.prefix, next.Add(1)))
	}
	return closedLoop(one, asked)
}

// runRead reads one of the entries that it created before.
func runRead(service service, asked settings) (result, error) {
	const entries = 100
	for n := range entries {
		if err := service.create(context.Background(), 0, fmt.Sprintf("%s%d", asked.prefix, n)); err != nil {
			return nil, err
		}
	}
	var next atomic.Int64
	one := func(ctx context.Context, worker int) error {
		name := fmt.Sprintf("%s%d", asked.prefix, next.Add(1)%entries)
		return service.read(ctx, worker, name, asked.stale)
	}
	return closedLoop(one, asked)
}

// runBeats lets brokers repeat their heartbeats as fast as they are answered.
func runBeats(service service, asked settings) (result, error) {
	beats := make([]func(context.Context) error, asked.workers)
	for broker := range beats {
		beat, err := service.join(context.Background(), firstBroker+broker+1)
		if err != nil {
			return nil, err
		}
		beats[broker] = beat
	}
	one := func(ctx context.Context, worker int) error { return beats[worker](ctx) }
	return closedLoop(one, asked)
}

// closedLoop lets each worker repeat one operation; what starts while warming up is not counted.
func closedLoop(one func(ctx context.Context, worker int) error, asked settings) (result, error) {
	begin := time.Now().Add(asked.warm)
	end := begin.Add(asked.seconds)
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(patience))
	defer cancel()
	took := make([][]time.Duration, asked.workers)
	var failed atomic.Int64
	var lastFailure atomic.Value
	var group sync.WaitGroup
	for worker := range asked.workers {
		group.Go(func() {
			for time.Now().Before(end) {
				started := time.Now()
				if err := one(ctx, worker); err != nil {
					failed.Add(1)
					lastFailure.Store(err.Error())
					time.Sleep(10 * time.Millisecond)
				} else if started.After(begin) {
					took[worker] = append(took[worker], time.Since(started))
				}
			}
		})
	}
	time.Sleep(time.Until(begin))
	cpu := cpuSeconds(asked.pids)
	group.Wait()
	cpu = cpuSeconds(asked.pids) - cpu
	all := slices.Concat(took...)
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing succeeded; %d failed: %v", failed.Load(), lastFailure.Load())
	}
	measured := result{
		"rate":   float64(len(all)) / time.Since(begin).Seconds(),
		"p50":    milliseconds(percentile(all, 0.5)),
		"p99":    milliseconds(percentile(all, 0.99)),
		"cpu":    cpu / float64(len(all)) * 1e6,
		"failed": failed.Load(),
	}
	if failed.Load() > 0 {
		measured["failure"] = lastFailure.Load()
	}
	return measured, nil
}

// runBulk adds many entries as fast as the service's own requests allow.
func runBulk(service service, asked settings) (result, error) {
	if _, err := service.createMany(context.Background(), "warm"+asked.prefix, asked.count/20); err != nil {
		return nil, err
	}
	cpu, started := cpuSeconds(asked.pids), time.Now()
	together, err := service.createMany(context.Background(), asked.prefix, asked.count)
	if err != nil {
		return nil, err
	}
	took := time.Since(started).Seconds()
	return result{"seconds": took, "cpu": cpuSeconds(asked.pids) - cpu, "together": together}, nil
}

// runBrokers registers brokers, some at a time, and lets each send a heartbeat every two seconds.
func runBrokers(service service, asked settings) (result, error) {
	crowd := newCrowd(service, asked)
	before := cpuSeconds(asked.pids)
	registering, err := crowd.register()
	if err != nil {
		return nil, err
	}
	registeringCPU := (cpuSeconds(asked.pids) - before) / float64(asked.workers) * 1e6
	unregistered := crowd.failed.Swap(0)
	time.Sleep(asked.warm)
	crowd.counting.Store(true)
	cpu, began := cpuSeconds(asked.pids), time.Now()
	time.Sleep(asked.seconds)
	cpu = (cpuSeconds(asked.pids) - cpu) / time.Since(began).Seconds()
	measured, err := crowd.end()
	if err == nil {
		measured["registering"], measured["unregistered"] = registering, unregistered
		measured["cores"], measured["registeringCpu"] = cpu, registeringCPU
	}
	return measured, err
}

// runTakeover registers brokers and kills the leader. The brokers try again until a heartbeat is
// answered, as agents do. A heartbeat's time counts from its first try; one that finds the broker
// fenced has failed.
func runTakeover(service service, asked settings) (result, error) {
	if len(asked.pids) == 0 {
		return nil, errors.New("a takeover needs -pids with the leader's first")
	}
	crowd := newCrowd(service, asked)
	crowd.tries = 9 * time.Second
	registering, err := crowd.register()
	if err != nil {
		return nil, err
	}
	unregistered := crowd.failed.Swap(0)
	time.Sleep(asked.warm)
	crowd.counting.Store(true)
	if err := syscall.Kill(asked.pids[0], syscall.SIGKILL); err != nil {
		return nil, err
	}
	time.Sleep(asked.seconds)
	measured, err := crowd.end()
	if err == nil {
		measured["registering"], measured["unregistered"] = registering, unregistered
	}
	return measured, err
}

// A crowd is many brokers that send heartbeats.
type crowd struct {
	service            service
	asked              settings
	tries              time.Duration // how long a broker tries again; 0: it tries once
	registered, failed atomic.Int64
	fenced             atomic.Int64
	lastFailure        atomic.Value
	counting           atomic.Bool
	over               chan struct{}
	mutex              sync.Mutex
	took               []time.Duration
}

func newCrowd(service service, asked settings) *crowd {
	return &crowd{service: service, asked: asked, over: make(chan struct{})}
}

// register returns the seconds until all brokers are online, or could not register.
func (c *crowd) register() (float64, error) {
	started := time.Now()
	gate := make(chan struct{}, c.asked.gate)
	for broker := range c.asked.workers {
		go c.live(firstBroker+broker+1, gate)
	}
	for c.registered.Load()+c.failed.Load() < int64(c.asked.workers) {
		if time.Since(started) > 6*patience {
			return 0, fmt.Errorf("%d of %d brokers registered within 6 minutes; last failure: %v",
				c.registered.Load(), c.asked.workers, c.lastFailure.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(started).Seconds(), nil
}

func (c *crowd) live(broker int, gate chan struct{}) {
	const period = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	gate <- struct{}{}
	beat, err := c.service.join(ctx, broker)
	<-gate
	if err != nil {
		c.failed.Add(1)
		c.lastFailure.Store(err.Error())
		return
	}
	c.registered.Add(1)
	for turn := time.Now().Add(rand.N(period)); ; turn = turn.Add(period) {
		select {
		case <-c.over:
			return
		case <-time.After(time.Until(turn)):
		}
		c.beat(ctx, beat)
	}
}

func (c *crowd) beat(ctx context.Context, beat func(context.Context) error) {
	sent := time.Now()
	err := beat(ctx)
	for wait := 20 * time.Millisecond; err != nil && !errors.Is(err, errFenced) && time.Since(sent) < c.tries; {
		time.Sleep(wait/2 + rand.N(wait/2))
		wait = min(2*wait, time.Second)
		err = beat(ctx)
	}
	if err != nil {
		c.lastFailure.Store(err.Error())
	}
	if !c.counting.Load() {
		return
	}
	if errors.Is(err, errFenced) {
		c.fenced.Add(1)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		c.failed.Add(1)
	} else {
		c.took = append(c.took, time.Since(sent))
	}
}

// end stops counting and the brokers, and returns what was counted.
func (c *crowd) end() (result, error) {
	c.counting.Store(false)
	close(c.over)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.took) == 0 {
		return nil, fmt.Errorf("no heartbeat was answered; last failure: %v", c.lastFailure.Load())
	}
	return result{
		"p50": milliseconds(percentile(c.took, 0.5)), "p99": milliseconds(percentile(c.took, 0.99)),
		"worst": milliseconds(slices.Max(c.took)), "beats": len(c.took),
		"failed": c.failed.Load(), "fenced": c.fenced.Load(), "failure": c.lastFailure.Load(),
	}, nil
}

// runWatch changes one entry again and again, and waits each time until the last watcher has seen it.
func runWatch(service service, asked settings) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	waits := make([]func(context.Context) error, asked.workers)
	for watcher := range waits {
		wait, err := service.watch(ctx, watcher)
		if err != nil {
			return nil, err
		}
		waits[watcher] = wait
	}
	var took []time.Duration
	cpu := 0.0
	for number := range asked.count {
		var group sync.WaitGroup
		var failure atomic.Value
		for _, wait := range waits {
			group.Go(func() {
				if err := wait(ctx); err != nil {
					failure.Store(err.Error())
				}
			})
		}
		// Every watcher's request must have arrived before the change is sent.
		time.Sleep(50*time.Millisecond + time.Duration(asked.workers)*time.Millisecond)
		before, started := cpuSeconds(asked.pids), time.Now()
		if err := service.change(ctx, number); err != nil {
			return nil, err
		}
		group.Wait()
		cpu += cpuSeconds(asked.pids) - before
		if failure.Load() != nil {
			return nil, fmt.Errorf("a watcher failed: %v", failure.Load())
		}
		took = append(took, time.Since(started))
	}
	return result{
		"last": milliseconds(percentile(took, 0.5)), "worst": milliseconds(slices.Max(took)),
		"cpu": cpu / float64(asked.count*asked.workers) * 1e6,
	}, nil
}

// runFailover ends or stops the first process, and measures until a creation succeeds on a survivor
// that began after that. The survivors are asked every 5 ms from the start.
func runFailover(leader, survivors service, asked settings) (result, error) {
	if err := leader.prepare(context.Background()); err != nil {
		return nil, err
	}
	number := 0
	write := func(service service) error {
		number++
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		return service.create(ctx, 0, fmt.Sprintf("%s%d", asked.prefix, number))
	}
	for steady := time.Now().Add(asked.warm); time.Now().Before(steady); time.Sleep(5 * time.Millisecond) {
		if err := write(leader); err != nil {
			steady = time.Now().Add(asked.warm)
		}
		_ = write(survivors) // Not all services let a node that doesn't lead pass a creation on.
	}
	signal := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP}[asked.signal]
	if len(asked.pids) == 0 || signal == 0 {
		return nil, errors.New("failover needs -pids with the leader's first, and -signal KILL or STOP")
	}
	started := time.Now()
	if err := syscall.Kill(asked.pids[0], signal); err != nil {
		return nil, err
	}
	for time.Since(started) < patience {
		if write(survivors) == nil {
			return result{"gap": milliseconds(time.Since(started))}, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, errors.New("no creation succeeded within a minute")
}

func percentile(values []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func milliseconds(value time.Duration) float64 { return float64(value) / float64(time.Millisecond) }

// cpuSeconds is the processor time of some processes since they started. A process that is gone
// counts as nothing.
func cpuSeconds(pids []int) float64 {
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux
	total := 0.0
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, _ := strconv.ParseFloat(field, 64)
			total += ticks / ticksPerSecond
		}
	}
	return total
}
