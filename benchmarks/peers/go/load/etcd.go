package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	etcdConnections   = 6
	etcdWatchersShare = 10
	etcdLeasesShare   = 100
	etcdBatch         = 128 // the server's default limit of operations in a transaction
	etcdBatchesAtOnce = 8
	leaseSeconds      = 9
	watched           = "watched"
	valueBytes        = 100
)

var value = strings.Repeat("v", valueBytes)

// etcd is driven through its own Go client. Writes go to the leader.
type etcd struct {
	endpoints []string
	clients   []*clientv3.Client
	mutex     sync.Mutex
	watchers  []*clientv3.Client
	streams   []*leaseStream
}

func newEtcd(endpoints []string, _ settings) (service, error) {
	made := &etcd{endpoints: endpoints}
	for range etcdConnections {
		client, err := etcdClient(endpoints)
		if err != nil {
			return nil, err
		}
		made.clients = append(made.clients, client)
	}
	return made, nil
}

func etcdClient(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
}

func (e *etcd) client(worker int) *clientv3.Client { return e.clients[worker%len(e.clients)] }

func (e *etcd) prepare(context.Context) error { return nil }

func (e *etcd) create(ctx context.Context, worker int, name string) error {
	absent := clientv3.Compare(clientv3.CreateRevision(name), "=", 0)
	answer, err := e.client(worker).Txn(ctx).If(absent).Then(clientv3.OpPut(name, value)).Commit()
	if err == nil && !answer.Succeeded {
		return fmt.Errorf("%s exists", name)
	}
	return err
}

func (e *etcd) read(ctx context.Context, worker int, name string, stale bool) error {
	options := []clientv3.OpOption{}
	if stale {
		options = append(options, clientv3.WithSerializable())
	}
	answer, err := e.client(worker).Get(ctx, name, options...)
	if err == nil && len(answer.Kvs) != 1 {
		return fmt.Errorf("%s is not there", name)
	}
	return err
}

func (e *etcd) createMany(ctx context.Context, prefix string, count int) (int, error) {
	return etcdBatch, inBatches(count, etcdBatch, etcdBatchesAtOnce, func(worker, first, end int) error {
		puts := make([]clientv3.Op, 0, etcdBatch)
		for n := first; n < end; n++ {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%s%d", prefix, n), value))
		}
		_, err := e.client(worker).Txn(ctx).Then(puts...).Commit()
		return err
	})
}

// A leaseStream carries keep-alive requests of many leases; answers come in the order of the requests.
type leaseStream struct {
	mutex   sync.Mutex
	stream  pb.Lease_LeaseKeepAliveClient
	waiting map[int64]chan error
}

func (e *etcd) join(ctx context.Context, broker int) (func(context.Context) error, error) {
	client := e.client(broker)
	lease, err := client.Grant(ctx, leaseSeconds)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("brokers/%d", broker)
	if _, err := client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
		return nil, err
	}
	stream, err := e.leaseStream(broker)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return stream.keepAlive(ctx, int64(lease.ID)) }, nil
}

func (e *etcd) leaseStream(broker int) (*leaseStream, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	at := (broker - firstBroker - 1) / etcdLeasesShare
	for len(e.streams) <= at {
		client := e.client(len(e.streams))
		stream, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(context.Background())
		if err != nil {
			return nil, err
		}
		made := &leaseStream{stream: stream, waiting: map[int64]chan error{}}
		go made.receive()
		e.streams = append(e.streams, made)
	}
	return e.streams[at], nil
}

func (l *leaseStream) keepAlive(ctx context.Context, lease int64) error {
	done := make(chan error, 1)
	l.mutex.Lock()
	l.waiting[lease] = done
	err := l.stream.Send(&pb.LeaseKeepAliveRequest{ID: lease})
	l.mutex.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *leaseStream) receive() {
	for {
		answer, err := l.stream.Recv()
		l.mutex.Lock()
		if err != nil {
			for _, done := range l.waiting {
				done <- err
			}
			l.waiting = map[int64]chan error{}
			l.mutex.Unlock()
			return
		}
		done := l.waiting[answer.ID]
		delete(l.waiting, answer.ID)
		l.mutex.Unlock()
		if done == nil {
			continue
		}
		if answer.TTL <= 0 {
			done <- errors.New("the lease has expired")
		} else {
			done <- nil
		}
	}
}

func (e *etcd) watch(_ context.Context, watcher int) (func(context.Context) error, error) {
	if watcher%etcdWatchersShare == 0 {
		client, err := etcdClient(e.endpoints)
		if err != nil {
			return nil, err
		}
		e.watchers = append(e.watchers, client)
	}
	client := e.watchers[len(e.watchers)-1]
	events := client.Watch(clientv3.WithRequireLeader(context.Background()), watched, clientv3.WithCreatedNotify())
	if created := <-events; created.Err() != nil {
		return nil, created.Err()
	}
	return func(ctx context.Context) error {
		select {
		case event := <-events:
			return event.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

func (e *etcd) change(ctx context.Context, number int) error {
	_, err := e.clients[0].Put(ctx, watched, fmt.Sprint(number))
	return err
}

// inBatches calls `one` for consecutive parts of 0..count, some at the same time.
func inBatches(count, batch, atOnce int, one func(worker, first, end int) error) error {
	parts := make(chan int)
	failures := make(chan error, atOnce)
	var group sync.WaitGroup
	for worker := range atOnce {
		group.Go(func() {
			for first := range parts {
				if err := one(worker, first, min(first+batch, count)); err != nil {
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	for first := 0; first < count; first += batch {
		parts <- first
	}
	close(parts)
	group.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}
