package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	zookeeperConnections   = 6
	zookeeperBatch         = 500 // a multi of more exceeds the server's limit of a request's bytes
	zookeeperBatchesAtOnce = 4
	zookeeperSession       = 9 * time.Second
)

// zookeeper is driven through the Go client; sessions with heartbeats only speak its protocol directly,
// since that client decides by itself when it sends a ping.
type zookeeper struct {
	endpoints []string
	conns     []*zk.Conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func newZooKeeper(endpoints []string, _ settings) (service, error) {
	made := &zookeeper{endpoints: endpoints}
	for range zookeeperConnections {
		// All on the leader, as for the other services.
		conn, err := zookeeperConn(endpoints)
		if err != nil {
			return nil, err
		}
		made.conns = append(made.conns, conn)
	}
	return made, nil
}

func (z *zookeeper) prepare(context.Context) error {
	_, err := z.conns[0].Create("/brokers", nil, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func zookeeperConn(endpoints []string) (*zk.Conn, error) {
	inOrder := zk.WithHostProvider(&givenOrder{endpoints: endpoints})
	conn, events, err := zk.Connect(endpoints, zookeeperSession, zk.WithLogger(silent{}), inOrder)
	if err != nil {
		return nil, err
	}
	limit := time.After(patience)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				go func() {
					for range events { // Nobody else reads them.
					}
				}()
				return conn, nil
			}
		case <-limit:
			return nil, errors.New("no session within a minute")
		}
	}
}

// givenOrder tries the first address first; the library's own provider shuffles them.
type givenOrder struct {
	mutex     sync.Mutex
	endpoints []string
	turn      int
}

func (g *givenOrder) Init(endpoints []string) error { return nil }
func (g *givenOrder) Len() int                      { return len(g.endpoints) }
func (g *givenOrder) Connected()                    {}

func (g *givenOrder) Next() (string, bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	server := g.endpoints[g.turn%len(g.endpoints)]
	g.turn++
	return server, g.turn > 1 && (g.turn-1)%len(g.endpoints) == 0
}

func (z *zookeeper) conn(worker int) *zk.Conn { return z.conns[worker%len(z.conns)] }

func (z *zookeeper) create(_ context.Context, worker int, name string) error {
	_, err := z.conn(worker).Create("/"+name, []byte(value), 0, zk.WorldACL(zk.PermAll))
	return err
}

func (z *zookeeper) read(_ context.Context, worker int, name string, stale bool) error {
	if !stale {
		if _, err := z.conn(worker).Sync("/" + name); err != nil {
			return err
		}
	}
	_, _, err := z.conn(worker).Get("/" + name)
	return err
}

func (z *zookeeper) createMany(_ context.Context, prefix string, count int) (int, error) {
	acl := zk.WorldACL(zk.PermAll)
	return zookeeperBatch, inBatches(count, zookeeperBatch, zookeeperBatchesAtOnce, func(worker, first, end int) error {
		requests := make([]any, 0, zookeeperBatch)
		for n := first; n < end; n++ {
			requests = append(requests, &zk.CreateRequest{
				Path: fmt.Sprintf("/%s%d", prefix, n), Data: []byte(value), Acl: acl,
			})
		}
		_, err := z.conn(worker).Multi(requests...)
		return err
	})
}

func (z *zookeeper) join(ctx context.Context, broker int) (func(context.Context) error, error) {
	session, err := openSession(ctx, z.endpoints[broker%len(z.endpoints)])
	if err != nil {
		return nil, err
	}
	if err := session.createEphemeral(fmt.Sprintf("/brokers/%d", broker)); err != nil {
		return nil, err
	}
	return func(context.Context) error { return session.ping() }, nil
}

func (z *zookeeper) watch(ctx context.Context, watcher int) (func(context.Context) error, error) {
	conn, err := zookeeperConn([]string{z.endpoints[watcher%len(z.endpoints)]})
	if err != nil {
		return nil, err
	}
	if watcher == 0 {
		if err := z.create(ctx, 0, watched); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		_, _, events, err := conn.GetW("/" + watched)
		if err != nil {
			return err
		}
		select {
		case event := <-events:
			return event.Err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

func (z *zookeeper) change(_ context.Context, number int) error {
	_, err := z.conns[0].Set("/"+watched, fmt.Append(nil, number), -1)
	return err
}

// A session is one connection that speaks ZooKeeper's protocol for one request at a time.
type session struct{ conn net.Conn }

const (
	opCreate  = 1
	opPing    = 11
	pingXid   = -2
	ephemeral = 1
)

func openSession(ctx context.Context, endpoint string) (*session, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return nil, err
	}
	made := &session{conn}
	hello := binary.BigEndian.AppendUint32(nil, 0)  // protocol version
	hello = binary.BigEndian.AppendUint64(hello, 0) // last zxid seen
	hello = binary.BigEndian.AppendUint32(hello, uint32(zookeeperSession.Milliseconds()))
	hello = binary.BigEndian.AppendUint64(hello, 0) // a new session
	hello = appendBytes(hello, make([]byte, 16))    // its password
	hello = append(hello, 0)                        // not read-only
	answer, err := made.exchange(hello)
	if err == nil && (len(answer) < 8 || binary.BigEndian.Uint32(answer[4:8]) == 0) {
		err = errors.New("the server refused the session")
	}
	return made, err
}

func (s *session) createEphemeral(path string) error {
	request := header(1, opCreate)
	request = appendBytes(request, []byte(path))
	request = appendBytes(request, []byte(value))
	request = binary.BigEndian.AppendUint32(request, 1) // one entry of access control:
	request = binary.BigEndian.AppendUint32(request, zk.PermAll)
	request = appendBytes(request, []byte("world"))
	request = appendBytes(request, []byte("anyone"))
	request = binary.BigEndian.AppendUint32(request, ephemeral)
	return s.call(request)
}

func (s *session) ping() error { return s.call(header(pingXid, opPing)) }

func (s *session) call(request []byte) error {
	answer, err := s.exchange(request)
	if err != nil {
		return err
	}
	if code := int32(binary.BigEndian.Uint32(answer[12:16])); code != 0 {
		return fmt.Errorf("ZooKeeper answered with error %d", code)
	}
	return nil
}

func (s *session) exchange(request []byte) ([]byte, error) {
	return exchangeUntil(s.conn, request, time.Now().Add(patience))
}

// exchangeUntil sends one message behind its length, and returns the next one that comes.
func exchangeUntil(conn net.Conn, request []byte, limit time.Time) ([]byte, error) {
	if err := conn.SetDeadline(limit); err != nil {
		return nil, err
	}
	if _, err := conn.Write(appendBytes(nil, request)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

func header(xid, kind int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(xid)), uint32(kind))
}

func appendBytes(to, what []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(what))), what...)
}
