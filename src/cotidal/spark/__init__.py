"""Topics as Spark tables, through PySpark and without a jar: ``format("cotidal")``.

  options        what a job may ask for, under the names of Spark's own ``kafka`` format
  columns        the columns of a record, as Spark and as Arrow name them
  decoding       fetched record batches into Arrow columns, a column at a time
  reading        one range of one partition, fetched on an executor
  planning       which ranges there are to read: on the driver
  source, stream the readers of a batch query and of a stream
  encoding       Arrow columns into record batches
  writing        the rows of one task, on an executor
  memory         what was written for a batch, in the transaction that wrote it: on the driver
  sink           the writers of a batch query and of a stream

and what is made of them (docs/pipelines.md):

  audit/         do all replicas of a partition hold the same?
  health         how replication has fared, from the brokers' events; health_stream: as it goes on
  flags          what of that deserves one
  archive        topics as Parquet files
  engine         simulated runs on executors
  query_runs     streaming queries, run to their end
  session        a Spark session for these, or one sentence about what it lacks

Needs the extra ``cotidal[spark]`` and, as Spark does, Java. No broker imports this room.
"""
