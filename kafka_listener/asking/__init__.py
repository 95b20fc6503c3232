"""How a Kafka request asks the controllers: through our own routes, in process (ADR 0073).

`request` says what a handler gets and how it answers. `asking` sends a route's message and reads
its reply. `kafka_code` and `error_codes` turn our errors into Kafka's numbers, and `failures` puts
an error into the place that each of Kafka's responses has for it. `turns` lets steps follow one
another without going deeper, `in_steps` works on long lists with pauses, and `letting_go` frees
large requests.
"""
