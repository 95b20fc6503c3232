package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	kraftBatch    = 2000 // partitions in one CreateTopics request
	kraftPerTopic = 50
	kraftCluster  = "MkU3OEVBNTcwNTJENDM2Qk" // as services.py formats it
)

// kraft drives Kafka's own controllers through Kafka's protocol, as brokers and tools do. A connection
// carries one request at a time.
type kraft struct {
	endpoints []string
	mutex     sync.Mutex
	leader    string
	idle      []*kafkaConn
}

func newKraft(endpoints []string, _ settings) (service, error) {
	return &kraft{endpoints: endpoints, leader: endpoints[0]}, nil
}

func (k *kraft) prepare(ctx context.Context) error { return keepBrokers(ctx, k) }

func (k *kraft) create(ctx context.Context, _ int, name string) error {
	return k.createTopics(ctx, []topic{{name, 1}})
}

type topic struct {
	name       string
	partitions int32
}

func (k *kraft) createTopics(ctx context.Context, topics []topic) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.SetVersion(7)
	request.TimeoutMillis = int32(patience.Milliseconds())
	for _, one := range topics {
		wanted := kmsg.NewCreateTopicsRequestTopic()
		wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = one.name, one.partitions, 1
		request.Topics = append(request.Topics, wanted)
	}
	answer, err := k.ask(ctx, request)
	if err != nil {
		return err
	}
	for _, one := range answer.(*kmsg.CreateTopicsResponse).Topics {
		if err := kerr.ErrorForCode(one.ErrorCode); err != nil {
			k.findLeader(err)
			return err
		}
	}
	return nil
}

func (k *kraft) read(context.Context, int, string, bool) error {
	return errors.New("KRaft's controllers answer no reads of entries")
}

func (k *kraft) createMany(ctx context.Context, prefix string, count int) (int, error) {
	return kraftBatch, inBatches(count, kraftBatch, 1, func(_, first, end int) error {
		var topics []topic
		for n := first; n < end; n += kraftPerTopic {
			topics = append(topics, topic{fmt.Sprintf("%s%d", prefix, n), int32(min(kraftPerTopic, end-n))})
		}
		return k.createTopics(ctx, topics)
	})
}

func (k *kraft) join(ctx context.Context, broker int) (func(context.Context) error, error) {
	conn, err := dialKafka(ctx, k.leader)
	if err != nil {
		return nil, err
	}
	conn.limit = time.Now().Add(patience)
	answer, err := conn.ask(k.registration(int32(broker)))
	if err != nil {
		return nil, err
	}
	registered := answer.(*kmsg.BrokerRegistrationResponse)
	if err := kerr.ErrorForCode(registered.ErrorCode); err != nil {
		return nil, fmt.Errorf("broker %d was not registered: %w", broker, err)
	}
	request := kmsg.NewPtrBrokerHeartbeatRequest()
	request.SetVersion(1)
	request.BrokerID, request.BrokerEpoch = int32(broker), registered.BrokerEpoch
	request.CurrentMetadataOffset = registered.BrokerEpoch
	beat := func(context.Context) error {
		conn.limit = time.Now().Add(patience)
		answer, err := conn.ask(request)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.(*kmsg.BrokerHeartbeatResponse).ErrorCode)
	}
	return beat, beat(ctx) // The first one unfences the broker.
}

func (k *kraft) registration(broker int32) kmsg.Request {
	request := kmsg.NewPtrBrokerRegistrationRequest()
	request.SetVersion(4)
	request.BrokerID, request.ClusterID = broker, kraftCluster
	process := incarnation(int(broker))
	request.IncarnationID, request.LogDirs = process, [][16]byte{process}
	listener := kmsg.NewBrokerRegistrationRequestListener()
	listener.Name, listener.Host, listener.Port = "PLAINTEXT", "127.0.0.1", 9092
	request.Listeners = append(request.Listeners, listener)
	for _, name := range []string{
		"metadata.version", "kraft.version", "transaction.version", "group.version",
		"eligible.leader.replicas.version", "share.version", "streams.version",
	} {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MaxSupportedVersion = name, 100 // whatever the controllers have finalised
		if name == "metadata.version" {
			feature.MinSupportedVersion = 1
		}
		request.Features = append(request.Features, feature)
	}
	return request
}

// watch fetches the metadata log's next records as an observer does, with a Fetch that the leader holds.
func (k *kraft) watch(ctx context.Context, _ int) (func(context.Context) error, error) {
	conn, err := dialKafka(ctx, k.leader)
	if err != nil {
		return nil, err
	}
	conn.limit = time.Now().Add(patience)
	quorum, err := conn.describeQuorum()
	if err != nil {
		return nil, err
	}
	offset := quorum.HighWatermark
	return func(context.Context) error {
		for {
			answer, err := conn.fetchMetadata(offset, quorum.LeaderEpoch)
			if err != nil {
				return err
			}
			if next := endOf(answer.RecordBatches); next > offset {
				offset = next
				return nil
			}
		}
	}, nil
}

func (c *kafkaConn) fetchMetadata(offset int64, epoch int32) (*kmsg.FetchResponseTopicPartition, error) {
	request := kmsg.NewPtrFetchRequest()
	request.SetVersion(16)
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = 5000, 1, 1<<20
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.FetchOffset, partition.PartitionMaxBytes = offset, 1<<20
	partition.CurrentLeaderEpoch, partition.LastFetchedEpoch = epoch, epoch
	metadata := kmsg.NewFetchRequestTopic()
	metadata.TopicID[15] = 1 // __cluster_metadata
	metadata.Partitions = append(metadata.Partitions, partition)
	request.Topics = append(request.Topics, metadata)
	c.limit = time.Now().Add(patience)
	answer, err := c.ask(request)
	if err != nil {
		return nil, err
	}
	fetched := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return nil, err
	}
	part := &fetched.Topics[0].Partitions[0]
	return part, kerr.ErrorForCode(part.ErrorCode)
}

// endOf is the offset behind the last of some record batches; 0 if there is none.
func endOf(batches []byte) (end int64) {
	for len(batches) >= 61 {
		end = int64(binary.BigEndian.Uint64(batches)) + int64(int32(binary.BigEndian.Uint32(batches[23:]))) + 1
		batches = batches[min(len(batches), 12+int(binary.BigEndian.Uint32(batches[8:]))):]
	}
	return end
}

func (k *kraft) change(ctx context.Context, number int) error {
	return k.create(ctx, 0, fmt.Sprintf("%s%d-%d", watched, firstBroker, number))
}

// ask sends a request to the leader on a connection that nobody else uses meanwhile.
func (k *kraft) ask(ctx context.Context, request kmsg.Request) (kmsg.Response, error) {
	k.mutex.Lock()
	leader := k.leader
	var conn *kafkaConn
	if last := len(k.idle) - 1; last >= 0 {
		conn, k.idle = k.idle[last], k.idle[:last]
	}
	k.mutex.Unlock()
	if conn == nil {
		made, err := dialKafka(ctx, leader)
		if err != nil {
			k.findLeader(err)
			return nil, err
		}
		conn = made
	}
	if deadline, limited := ctx.Deadline(); limited {
		conn.limit = deadline
	} else {
		conn.limit = time.Now().Add(patience)
	}
	answer, err := conn.ask(request)
	if err != nil {
		conn.conn.Close()
		k.findLeader(err)
		return nil, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if leader == k.leader {
		k.idle = append(k.idle, conn)
	} else {
		conn.conn.Close()
	}
	return answer, nil
}

// findLeader turns to the next controller after a refusal or a lost connection.
func (k *kraft) findLeader(reason error) {
	if errors.Is(reason, kerr.TopicAlreadyExists) {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for n, endpoint := range k.endpoints {
		if endpoint == k.leader {
			k.leader = k.endpoints[(n+1)%len(k.endpoints)]
			break
		}
	}
	for _, conn := range k.idle {
		conn.conn.Close()
	}
	k.idle = nil
}

type kafkaConn struct {
	conn   net.Conn
	number int32
	limit  time.Time
}

func dialKafka(ctx context.Context, endpoint string) (*kafkaConn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return nil, err
	}
	return &kafkaConn{conn: conn}, nil
}

func (c *kafkaConn) ask(request kmsg.Request) (kmsg.Response, error) {
	c.number++
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("load"))
	sized := formatter.AppendRequest(nil, request, c.number)
	answer, err := exchangeUntil(c.conn, sized[4:], c.limit)
	if err != nil {
		return nil, err
	}
	body := answer[4:] // behind the correlation id
	if request.IsFlexible() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("the answer's header has tagged fields")
		}
		body = body[1:]
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	return response, response.ReadFrom(body)
}
