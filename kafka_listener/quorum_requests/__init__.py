"""What Kafka's raft client asks of a controller: Fetch, FetchSnapshot, DescribeQuorum.

`handlers.py` is the door. Only committed records are shown, and only the leader answers with them
(KIP-595, 630, 836).
"""
