package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	fetchVersion      = 12 // the last that names topics, so no topic ids are needed
	fetchWaitMs       = 500
	fetchBytes        = 50 << 20 // what Java and franz-go consumers ask for by default,
	fetchBytesPerPart = 1 << 20  // and of one partition
	batchHeadBytes    = 61
	lastDeltaAt       = 23
	recordCountAt     = 57
)

// drain reads a topic as fast as its brokers send it: batches are walked, never decoded or checked.
// One connection per leader, one request in flight on each, as consumers do. It ends with the last
// record, whoever reads it: the others may wait for more by then, in polls that are cut off.
func drain(o options) (map[string]any, error) {
	topic, brokers, err := describe(o)
	if err != nil {
		return nil, err
	}
	shares := map[int32][]int32{}
	for _, p := range topic.Partitions {
		shares[p.Leader] = append(shares[p.Leader], p.Partition)
	}
	var records, bytes atomic.Int64
	failures := make(chan error, len(shares))
	all := make(chan struct{})
	var ends sync.Once
	var group sync.WaitGroup
	cpu, start := cpuSeconds(), time.Now()
	var seconds float64
	deadline := start.Add(time.Duration(o.seconds * 1e9))
	for _, b := range brokers {
		partitions, leads := shares[b.NodeID]
		if !leads {
			continue
		}
		address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		group.Add(1)
		go func() {
			defer group.Done()
			err := drainOne(o, address, partitions, deadline, &records, &bytes, all)
			if err != nil && records.Load() < o.records {
				failures <- err
				return
			}
			ends.Do(func() {
				seconds = since(start)
				close(all)
			})
		}()
	}
	group.Wait()
	select {
	case err := <-failures:
		return nil, fmt.Errorf("%d of %d records were read: %w", records.Load(), o.records, err)
	default:
	}
	return map[string]any{
		"records": records.Load(), "bytes": bytes.Load(), "seconds": seconds,
		"cpu_seconds": cpuSeconds() - cpu, "records_per_s": float64(records.Load()) / seconds,
		"mb_per_s": float64(records.Load()*int64(o.size)) / seconds / 1e6, // of values, as elsewhere
	}, nil
}

// drainOne reads the partitions of one leader, until all readers together have -records records.
func drainOne(o options, address string, partitions []int32, deadline time.Time, records, bytes *atomic.Int64, all <-chan struct{}) error {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() { // whoever waits for more when all is read is cut off
		select {
		case <-all:
		case <-ended:
		}
		conn.Close()
	}()
	_ = conn.SetDeadline(deadline)
	next := map[int32]int64{}
	for _, p := range partitions {
		next[p] = 0
	}
	var buffer []byte
	for turn := int32(0); records.Load() < o.records; turn++ {
		if _, err := conn.Write(fetchFrame(o.topic, partitions, next, turn)); err != nil {
			return err
		}
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(head[:]))
		if size < 5 || size > 2*fetchBytes {
			return fmt.Errorf("an answer of %d bytes", size)
		}
		if cap(buffer) < size {
			buffer = make([]byte, size)
		}
		frame := buffer[:size]
		if _, err := io.ReadFull(conn, frame); err != nil {
			return err
		}
		if err := takeBatches(frame[5:], next, records, bytes); err != nil { // after the response header
			return err
		}
		// Rotate, as consumers do: a broker fills an answer from the front.
		partitions = append(partitions[1:len(partitions):len(partitions)], partitions[0])
	}
	return nil
}

func takeBatches(body []byte, next map[int32]int64, records, bytes *atomic.Int64) error {
	answer := kmsg.FetchResponse{Version: fetchVersion}
	if err := answer.ReadFrom(body); err != nil {
		return err
	}
	if answer.ErrorCode != 0 {
		return fmt.Errorf("fetch was refused with error code %d", answer.ErrorCode)
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("fetch of partition %d was refused with error code %d", p.Partition, p.ErrorCode)
			}
			rest := p.RecordBatches
			bytes.Add(int64(len(rest)))
			for len(rest) >= batchHeadBytes {
				length := 12 + int(binary.BigEndian.Uint32(rest[8:]))
				if length < batchHeadBytes {
					return errors.New("a batch shorter than its header")
				}
				if length > len(rest) {
					break // cut off by the broker; it comes again
				}
				base := int64(binary.BigEndian.Uint64(rest))
				if base != next[p.Partition] {
					return fmt.Errorf("partition %d: a batch at %d where %d was expected", p.Partition, base, next[p.Partition])
				}
				next[p.Partition] = base + int64(binary.BigEndian.Uint32(rest[lastDeltaAt:])) + 1
				records.Add(int64(binary.BigEndian.Uint32(rest[recordCountAt:])))
				rest = rest[length:]
			}
		}
	}
	return nil
}

func fetchFrame(name string, partitions []int32, next map[int32]int64, correlation int32) []byte {
	request := kmsg.NewPtrFetchRequest()
	request.Version = fetchVersion
	request.ReplicaID = -1
	request.MaxWaitMillis = fetchWaitMs
	request.MinBytes = 1
	request.MaxBytes = fetchBytes
	request.SessionEpoch = -1 // no fetch session
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = name
	for _, p := range partitions {
		wanted := kmsg.NewFetchRequestTopicPartition()
		wanted.Partition = p
		wanted.CurrentLeaderEpoch = -1
		wanted.FetchOffset = next[p]
		wanted.LastFetchedEpoch = -1
		wanted.LogStartOffset = -1
		wanted.PartitionMaxBytes = fetchBytesPerPart
		topic.Partitions = append(topic.Partitions, wanted)
	}
	request.Topics = append(request.Topics, topic)
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("cotidal-bench"))
	return formatter.AppendRequest(nil, request, correlation)
}
