"""What the measurements are made with: a cluster, brokers, a pipe, floors, figures, drawings."""
