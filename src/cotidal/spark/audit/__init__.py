"""Do all replicas of a topic hold the same? Read on as many executors as there are.

copies        which replicas there are and where each is read: its broker, or its directory
replica_logs  the batches of one replica in a range of offsets, over the wire or from its files
stretches     what such a range comes to: offsets, epochs, checksums, a digest. Pure
findings      where replicas differ, told by offset, epoch and broker. Pure
acknowledged  is every record there, once, for which a producer has a receipt?
job           the Spark job: ranges read side by side, compared, what differs looked at closely
"""
