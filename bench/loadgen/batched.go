package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Enough to keep every partition's batch full, small enough (100 MB of 1 KB records) for a laptop.
const bufferedRecords = 100_000

func acksOption(acks int) kgo.Acks {
	if acks == 1 {
		return kgo.LeaderAck()
	}
	return kgo.AllISRAcks()
}

// produce measures from the first record after the connection is warm to the last acknowledgement.
func produce(o options) (map[string]any, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(o.bootstrap...),
		kgo.DefaultProduceTopic(o.topic),
		kgo.RequiredAcks(acksOption(o.acks)),
		kgo.DisableIdempotentWrite(), // the same client for both acks: only acks differs
		kgo.MaxProduceRequestsInflightPerBroker(5),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchMaxBytes(int32(o.batchBytes)),
		kgo.MaxBufferedRecords(bufferedRecords),
		kgo.RecordDeliveryTimeout(60*time.Second),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	value := make([]byte, o.size)
	_, _ = rand.Read(value)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
		return nil, fmt.Errorf("the first record was not acknowledged: %w", err)
	}

	var failed atomic.Int64
	pool := sync.Pool{New: func() any { return new(kgo.Record) }}
	promise := func(r *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
		}
		*r = kgo.Record{}
		pool.Put(r)
	}
	cpu, start := cpuSeconds(), time.Now()
	limit := o.maxBytes / int64(o.size)
	var sent int64
	for sent < limit {
		if sent&255 == 0 && since(start) > o.seconds {
			break
		}
		r := pool.Get().(*kgo.Record)
		r.Value = value
		client.Produce(ctx, r, promise)
		sent++
	}
	if err := client.Flush(ctx); err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	seconds := since(start)
	acked := sent - failed.Load()
	return map[string]any{
		"records": acked, "failed": failed.Load(), "bytes": acked * int64(o.size),
		"written":       acked + 1, // with the first record: what a consumer will find
		"seconds":       seconds,
		"cpu_seconds":   cpuSeconds() - cpu,
		"records_per_s": float64(acked) / seconds,
		"mb_per_s":      float64(acked*int64(o.size)) / seconds / 1e6,
	}, nil
}

// consume measures from the client's first request to the last of -records records.
func consume(o options) (map[string]any, error) {
	partitions, err := partitionsOf(o)
	if err != nil {
		return nil, err
	}
	from := make(map[int32]kgo.Offset, len(partitions))
	for _, p := range partitions {
		from[p] = kgo.NewOffset().At(0)
	}
	cpu, start := cpuSeconds(), time.Now()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(o.bootstrap...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.topic: from}),
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(o.seconds*1e9))
	defer cancel()
	var got, bytes int64
	for got < o.records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("%d of %d records were read: %w", got, o.records, err)
		}
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("partition %d after %d records: %w", e.Partition, got, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			bytes += int64(len(r.Value))
		})
	}
	seconds := since(start)
	return map[string]any{
		"records": got, "bytes": bytes, "seconds": seconds, "cpu_seconds": cpuSeconds() - cpu,
		"records_per_s": float64(got) / seconds, "mb_per_s": float64(bytes) / seconds / 1e6,
	}, nil
}

func partitionsOf(o options) ([]int32, error) {
	topic, _, err := describe(o)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, 0, len(topic.Partitions))
	for _, p := range topic.Partitions {
		ids = append(ids, p.Partition)
	}
	return ids, nil
}

// describe asks any broker for the topic, and returns the brokers that it named as well.
func describe(o options) (kmsg.MetadataResponseTopic, []kmsg.MetadataResponseBroker, error) {
	none := kmsg.MetadataResponseTopic{}
	client, err := kgo.NewClient(kgo.SeedBrokers(o.bootstrap...))
	if err != nil {
		return none, nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ask := kmsg.NewPtrMetadataRequest()
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = kmsg.StringPtr(o.topic)
	ask.Topics = append(ask.Topics, wanted)
	answer, err := ask.RequestWith(ctx, client)
	if err != nil {
		return none, nil, err
	}
	if len(answer.Topics) != 1 || answer.Topics[0].ErrorCode != 0 {
		return none, nil, fmt.Errorf("topic %s cannot be described", o.topic)
	}
	return answer.Topics[0], answer.Brokers, nil
}
