"""Programs in Java that use a cluster through Kafka's clients, and what compiles and runs them."""
