package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaderOf tells which of the endpoints belongs to the leader, counted from 0. It fails while there is none.
var leaderOf = map[string]func(ctx context.Context, endpoints []string) (int, error){
	"logberg": eachAsked(logbergLeads), "zookeeper": eachAsked(zooKeeperLeads),
	"etcd": etcdLeader, "kraft": kraftLeader,
}

var errNoLeader = errors.New("no node leads")

func eachAsked(leads func(ctx context.Context, endpoint string) bool) func(context.Context, []string) (int, error) {
	return func(ctx context.Context, endpoints []string) (int, error) {
		for n, endpoint := range endpoints {
			if leads(ctx, endpoint) {
				return n, nil
			}
		}
		return 0, errNoLeader
	}
}

func logbergLeads(ctx context.Context, endpoint string) bool {
	request, err := http.NewRequestWithContext(ctx, "GET", endpoint+"/v1/status", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var status struct{ Active bool }
	return json.NewDecoder(answer.Body).Decode(&status) == nil && status.Active
}

func zooKeeperLeads(_ context.Context, endpoint string) bool {
	conn, err := net.DialTimeout("tcp", endpoint, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, "srvr")
	answer, _ := io.ReadAll(conn)
	return strings.Contains(string(answer), "Mode: leader")
}

func etcdLeader(ctx context.Context, endpoints []string) (int, error) {
	client, err := etcdClient(endpoints)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for n, endpoint := range endpoints {
		status, err := client.Status(ctx, endpoint)
		if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
			return n, nil
		}
	}
	return 0, errNoLeader
}

func kraftLeader(ctx context.Context, endpoints []string) (int, error) {
	for _, endpoint := range endpoints {
		conn, err := dialKafka(ctx, endpoint)
		if err != nil {
			continue
		}
		conn.limit = time.Now().Add(time.Second)
		quorum, err := conn.describeQuorum()
		conn.conn.Close()
		if err == nil && quorum.LeaderID > 0 && quorum.HighWatermark > 0 {
			return int(quorum.LeaderID) - 1, nil // node n listens on the n-th endpoint
		}
	}
	return 0, errNoLeader
}

func (c *kafkaConn) describeQuorum() (*kmsg.DescribeQuorumResponseTopicPartition, error) {
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.SetVersion(1)
	metadata := kmsg.NewDescribeQuorumRequestTopic()
	metadata.Topic = "__cluster_metadata"
	metadata.Partitions = append(metadata.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request.Topics = append(request.Topics, metadata)
	answer, err := c.ask(request)
	if err != nil {
		return nil, err
	}
	topics := answer.(*kmsg.DescribeQuorumResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 || topics[0].Partitions[0].ErrorCode != 0 {
		return nil, fmt.Errorf("this node does not know the quorum")
	}
	return &topics[0].Partitions[0], nil
}
