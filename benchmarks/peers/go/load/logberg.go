package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	logbergCluster  = "benchmark"
	logbergPerTopic = 50
	logbergBatch    = 100_000 // partitions in one request
	messagePack     = "application/msgpack"
	heldMillis      = 2000
)

// logberg is driven over plain HTTP: JSON for topics, MessagePack for what broker agents send.
type logberg struct {
	endpoints []string
	leader    atomic.Int32
	client    *http.Client
	next      atomic.Pointer[change] // that watchers wait for
}

// A change is known by its offset: other records, as of a broker that is fenced, wake watchers too.
type change struct {
	made   chan struct{}
	offset int64 // set when made is closed
}

func (c *change) isMade() bool {
	select {
	case <-c.made:
		return true
	default:
		return false
	}
}

func newLogberg(endpoints []string, _ settings) (service, error) {
	made := &logberg{endpoints: endpoints, client: newClient(20_000)}
	made.next.Store(&change{made: make(chan struct{})})
	return made, nil
}

func newClient(idle int) *http.Client {
	transport := &http.Transport{
		MaxIdleConnsPerHost: idle,
		DialContext:         dialFromSeveral,
		// A controller closes an idle connection after 5 s. A request that crosses that is lost.
		IdleConnTimeout: 4 * time.Second,
	}
	return &http.Client{Transport: transport}
}

var dials atomic.Uint32

// dialFromSeveral dials from eight addresses of this machine in turn, as so many hosts would:
// ten thousand brokers have more than one address, and a controller limits the connections of one.
func dialFromSeveral(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	if strings.HasPrefix(address, "127.") {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+dials.Add(1)%8))}
	}
	return dialer.DialContext(ctx, network, address)
}

func (l *logberg) prepare(ctx context.Context) error { return keepBrokers(ctx, l) }

type newTopic struct {
	Name              string `json:"name"`
	NumPartitions     int    `json:"numPartitions"`
	ReplicationFactor int    `json:"replicationFactor"`
}

func (l *logberg) create(ctx context.Context, _ int, name string) error {
	_, err := l.createTopics(ctx, []newTopic{{name, 1, 1}})
	return err
}

func (l *logberg) createTopics(ctx context.Context, topics []newTopic) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"topics": topics})
	if err != nil {
		return nil, err
	}
	answer, err := l.ask(ctx, "POST", "/v1/topics", "application/json", body)
	if err == nil && bytes.Contains(answer, []byte(`"error":{`)) {
		err = fmt.Errorf("%.300q", answer)
	}
	return answer, err
}

func (l *logberg) read(ctx context.Context, _ int, name string, stale bool) error {
	path := "/v1/topics/" + name
	if stale {
		path += "?consistency=stale"
	}
	_, err := l.ask(ctx, "GET", path, "application/json", nil)
	return err
}

// createMany sends up to 100,000 partitions in one request, which is one atomic change.
func (l *logberg) createMany(ctx context.Context, prefix string, count int) (int, error) {
	return logbergBatch, inBatches(count, logbergBatch, 1, func(_, first, end int) error {
		var topics []newTopic
		for n := first; n < end; n += logbergPerTopic {
			topics = append(topics, newTopic{fmt.Sprintf("%s%d", prefix, n), min(logbergPerTopic, end-n), 1})
		}
		_, err := l.createTopics(ctx, topics)
		for wait := (*throttled)(nil); errors.As(err, &wait); _, err = l.createTopics(ctx, topics) {
			time.Sleep(wait.after)
		}
		return err
	})
}

// A member is a broker as the leader sees it. It sends one request at a time, on a connection of its
// own, as an agent does.
type member struct {
	service     *logberg
	client      *http.Client
	broker      int
	incarnation string
	epoch       int64
	fetched     int64
	leaderEpoch int64
	state       string
}

type fetchReply struct {
	Error *struct {
		Code         string `msgpack:"code"`
		Message      string `msgpack:"message"`
		RetryAfterMs int64  `msgpack:"retryAfterMs"`
	} `msgpack:"error"`
	BrokerEpoch   int64  `msgpack:"brokerEpoch"`
	State         string `msgpack:"state"`
	HighWatermark int64  `msgpack:"highWatermark"`
	LeaderEpoch   int64  `msgpack:"leaderEpoch"`
}

// join registers a broker and brings it online.
func (l *logberg) join(ctx context.Context, broker int) (func(context.Context) error, error) {
	made, err := l.member(ctx, broker)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := made.fetch(ctx, 0)
		if err == nil && made.state != "online" {
			err = errFenced
		}
		return err
	}, nil
}

func (l *logberg) member(ctx context.Context, broker int) (*member, error) {
	process := incarnation(broker)
	made := &member{
		service: l, client: newClient(1), broker: broker, epoch: -1, leaderEpoch: -1,
		incarnation: base64.RawURLEncoding.EncodeToString(process[:]),
	}
	for made.state != "online" {
		hold := 0
		if made.epoch >= 0 {
			hold = heldMillis // As an agent: until it is unfenced, or something else is committed.
		}
		err := made.fetch(ctx, hold)
		var wait *throttled
		if errors.As(err, &wait) {
			// As an agent: a random part of up to a half is added, so that not all ask at once.
			time.Sleep(wait.after + rand.N(wait.after/2+1))
		} else if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// fetch sends one MetadataFetch: the registration, a heartbeat, or a held request for what is new.
func (m *member) fetch(ctx context.Context, waitMillis int) error {
	message := map[string]any{
		"clusterId": logbergCluster, "brokerId": m.broker, "incarnationId": m.incarnation,
		"brokerEpoch": m.epoch, "fetchedOffset": m.fetched, "fetchedEpoch": m.leaderEpoch,
		"appliedOffset": m.fetched, "wantedState": "online", "maxBytes": 0, "maxWaitMs": waitMillis,
	}
	if m.epoch < 0 {
		message["wantedState"] = "fenced"
		message["registration"] = map[string]any{
			"endpoints": []any{map[string]any{"name": "X", "host": "127.0.0.1", "port": 9092}},
			"rack":      fmt.Sprintf("rack-%d", m.broker%3),
			"features": []any{
				supported("eligible.leader.replicas.version", 0, 1),
				supported("logberg.version", 1, 100),
				supported("metadata.version", 21, 33),
			},
		}
	}
	body, err := msgpack.Marshal(message)
	if err != nil {
		return err
	}
	answer, err := m.service.send(ctx, m.client, "POST", "/v1/metadata/fetch", messagePack, body)
	if err != nil {
		return err
	}
	var reply fetchReply
	if err := msgpack.Unmarshal(answer, &reply); err != nil {
		return err
	}
	if reply.Error != nil {
		return fmt.Errorf("%s: %s", reply.Error.Code, reply.Error.Message)
	}
	m.epoch, m.state, m.leaderEpoch = reply.BrokerEpoch, reply.State, reply.LeaderEpoch
	m.fetched = max(m.fetched, reply.HighWatermark)
	return nil
}

func supported(name string, low, high int) map[string]any {
	return map[string]any{"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
}

func (l *logberg) watch(ctx context.Context, watcher int) (func(context.Context) error, error) {
	made, err := l.member(ctx, firstBroker+watcher+1)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		next := l.next.Load()
		for fresh := int64(-1); fresh != made.fetched; { // up to the end, so that only news answers
			fresh = made.fetched
			if err := made.fetch(ctx, 0); err != nil {
				return err
			}
		}
		// The change may lie behind the watcher already: it came while the watcher was catching up.
		for !next.isMade() || made.fetched < next.offset {
			before := made.fetched
			if err := made.fetch(ctx, heldMillis); err != nil {
				return err
			}
			if made.fetched != before {
				<-next.made
			}
		}
		return nil
	}, nil
}

func (l *logberg) change(ctx context.Context, number int) error {
	name := fmt.Sprintf("%s%d-%d", watched, firstBroker, number)
	answer, err := l.createTopics(ctx, []newTopic{{name, 1, 1}})
	made := l.next.Swap(&change{made: make(chan struct{})})
	defer close(made.made)
	if err != nil {
		return err
	}
	var reply struct {
		Offset int64 `json:"offset"`
	}
	err = json.Unmarshal(answer, &reply)
	made.offset = reply.Offset
	return err
}

var (
	errElsewhere = errors.New("another controller leads, or none")
	errFenced    = errors.New("the broker is fenced")
)

// throttled is a refusal for now.
type throttled struct{ after time.Duration }

func (t *throttled) Error() string { return fmt.Sprintf("THROTTLED for %v", t.after) }

func (l *logberg) ask(ctx context.Context, method, path, kind string, body []byte) ([]byte, error) {
	return l.send(ctx, l.client, method, path, kind, body)
}

func (l *logberg) send(
	ctx context.Context, client *http.Client, method, path, kind string, body []byte,
) ([]byte, error) {
	at := l.leader.Load()
	url := l.endpoints[int(at)%len(l.endpoints)] + path
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", kind)
	request.Header.Set("accept", kind)
	answer, err := client.Do(request)
	if err != nil {
		l.leader.CompareAndSwap(at, at+1)
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		if strings.Contains(string(content), "NOT_CONTROLLER") || answer.StatusCode == http.StatusServiceUnavailable {
			l.leader.CompareAndSwap(at, at+1)
			return nil, errElsewhere
		}
		var refusal fetchReply
		if answer.StatusCode == http.StatusTooManyRequests && msgpack.Unmarshal(content, &refusal) == nil && refusal.Error != nil {
			return nil, &throttled{time.Duration(refusal.Error.RetryAfterMs) * time.Millisecond}
		}
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && answer.StatusCode == http.StatusTooManyRequests {
			return nil, &throttled{time.Duration(seconds) * time.Second}
		}
		return nil, fmt.Errorf("status %d: %.300q", answer.StatusCode, content)
	}
	return content, nil
}
