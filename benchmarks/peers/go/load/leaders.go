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

// leaderOf tells which of the endpoints belongs to the leader, counted from 0. It fails while there is
// none, or while a node does not serve yet.
var leaderOf = map[string]func(ctx context.Context, endpoints []string) (int, error){
	"logberg": eachAsked(logbergLeads), "zookeeper": eachAsked(zooKeeperLeads),
	"etcd": etcdLeader, "kraft": kraftLeader,
}

var (
	errNoLeader = errors.New("no node leads")
	errNotAll   = errors.New("a node does not serve yet")
)

func eachAsked(leads func(ctx context.Context, endpoint string) (leading, serves bool)) func(context.Context, []string) (int, error) {
	return func(ctx context.Context, endpoints []string) (int, error) {
		leader := -1
		for n, endpoint := range endpoints {
			leading, serves := leads(ctx, endpoint)
			if !serves {
				return 0, errNotAll
			}
			if leading {
				leader = n
			}
		}
		if leader < 0 {
			return 0, errNoLeader
		}
		return leader, nil
	}
}

func logbergLeads(ctx context.Context, endpoint string) (leading, serves bool) {
	request, err := http.NewRequestWithContext(ctx, "GET", endpoint+"/v1/status", nil)
	if err != nil {
		return false, false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, false
	}
	defer answer.Body.Close()
	var status struct{ Active bool }
	err = json.NewDecoder(answer.Body).Decode(&status)
	return status.Active, err == nil
}

func zooKeeperLeads(_ context.Context, endpoint string) (leading, serves bool) {
	conn, err := net.DialTimeout("tcp", endpoint, time.Second)
	if err != nil {
		return false, false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, "srvr")
	answer, _ := io.ReadAll(conn)
	return strings.Contains(string(answer), "Mode: leader"), strings.Contains(string(answer), "Mode: ")
}

func etcdLeader(ctx context.Context, endpoints []string) (int, error) {
	client, err := etcdClient(endpoints)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return eachAsked(func(ctx context.Context, endpoint string) (leading, serves bool) {
		status, err := client.Status(ctx, endpoint)
		if err != nil || status.Leader == 0 {
			return false, false
		}
		return status.Leader == status.Header.MemberId, true
	})(ctx, endpoints)
}

func kraftLeader(ctx context.Context, endpoints []string) (int, error) {
	leader := -1
	for _, endpoint := range endpoints {
		conn, err := dialKafka(ctx, endpoint)
		if err != nil {
			return 0, errNotAll
		}
		conn.limit = time.Now().Add(time.Second)
		// Only the leader answers this, with its own id. Node n listens on the n-th endpoint.
		quorum, err := conn.describeQuorum()
		conn.conn.Close()
		if err == nil && quorum.LeaderID > 0 && quorum.HighWatermark > 0 {
			leader = int(quorum.LeaderID) - 1
		}
	}
	if leader < 0 {
		return 0, errNoLeader
	}
	return leader, nil
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
