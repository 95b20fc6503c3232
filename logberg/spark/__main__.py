"""`python -m logberg.spark FILE.zip` writes what the workers of a Spark cluster need."""

from audit.spark.packaging import main

main()
