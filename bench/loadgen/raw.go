package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	produceVersion    = 9  // the first flexible one, and the last that every broker of the last five years has
	correlationAt     = 8  // after length, key and version
	batchLengthAt     = 8  // inside a record batch
	batchCrcAt        = 17 //
	batchCrcCovers    = 21 // from attributes on
	answerDeadline    = 30 * time.Second
	leaderDeadline    = 10 * time.Second
	leaderPause       = 5 * time.Millisecond
	produceTimeoutMs  = 15_000
	readBufferBytes   = 1 << 16
	responseSizeLimit = 1 << 20
)

// latency sends one request at a time and waits for its answer.
func latency(o options) (map[string]any, error) {
	conn, frame, err := dialLeader(o)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reader := newAnswers(conn)
	total := o.warmup + int(o.records)
	micros := make([]float64, 0, o.records)
	cpu, begun := cpuSeconds(), time.Now()
	for i := 0; i < total; i++ {
		if i == o.warmup {
			cpu, begun = cpuSeconds(), time.Now()
		}
		_ = conn.SetDeadline(time.Now().Add(answerDeadline))
		binary.BigEndian.PutUint32(frame[correlationAt:], uint32(i))
		start := time.Now()
		if _, err := conn.Write(frame); err != nil {
			return nil, err
		}
		if err := reader.next(uint32(i)); err != nil {
			return nil, err
		}
		if i >= o.warmup {
			micros = append(micros, float64(time.Since(start).Nanoseconds())/1e3)
		}
	}
	seconds := since(begun)
	sort.Float64s(micros)
	at := func(q float64) float64 { return micros[min(len(micros)-1, int(q*float64(len(micros))))] }
	return map[string]any{
		"records": len(micros), "seconds": seconds, "cpu_seconds": cpuSeconds() - cpu,
		"p50_us": at(0.50), "p90_us": at(0.90), "p99_us": at(0.99), "p999_us": at(0.999),
		"max_us": micros[len(micros)-1],
	}, nil
}

// pipelined keeps -in-flight requests unanswered on one connection.
func pipelined(o options) (map[string]any, error) {
	conn, frame, err := dialLeader(o)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answered := make(chan int, o.inFlight) // how many, each time the socket had something
	broken := make(chan error, 1)
	total := make(chan int, 1)
	cpu, start := cpuSeconds(), time.Now()
	_ = conn.SetDeadline(start.Add(time.Duration(o.seconds*1e9) + answerDeadline))
	go readAnswers(conn, answered, total, broken)

	sent, free := 0, o.inFlight
	deadline := start.Add(time.Duration(o.seconds * 1e9))
	out := make([]byte, 0, o.inFlight*len(frame))
	for time.Now().Before(deadline) {
		out = out[:0]
		for ; free > 0; free-- {
			binary.BigEndian.PutUint32(frame[correlationAt:], uint32(sent))
			out = append(out, frame...)
			sent++
		}
		if len(out) > 0 {
			if _, err := conn.Write(out); err != nil {
				return nil, err
			}
		}
		select {
		case n := <-answered:
			free += n
		case err := <-broken:
			return nil, err
		}
	}
	total <- sent
	for free < o.inFlight {
		select {
		case n := <-answered:
			free += n
		case err := <-broken:
			return nil, err
		}
	}
	seconds := since(start)
	return map[string]any{
		"requests": sent, "seconds": seconds, "cpu_seconds": cpuSeconds() - cpu,
		"requests_per_s": float64(sent) / seconds,
	}, nil
}

// readAnswers reports answers in the lumps in which they arrive, until it has read what total says.
func readAnswers(conn net.Conn, answered chan<- int, total <-chan int, broken chan<- error) {
	reader := newAnswers(conn)
	wanted := -1
	for got := 0; wanted < 0 || got < wanted; {
		lump := 0
		for {
			if err := reader.next(uint32(got)); err != nil {
				broken <- err
				return
			}
			got++
			lump++
			if reader.source.Buffered() == 0 || lump == cap(answered) {
				break
			}
		}
		answered <- lump
		select {
		case wanted = <-total:
		default:
		}
	}
}

type answers struct {
	source *bufio.Reader
	buffer []byte
}

func newAnswers(conn net.Conn) *answers {
	return &answers{source: bufio.NewReaderSize(conn, readBufferBytes)}
}

// refused is the error code of a produce request that was not taken.
type refused int16

func (r refused) Error() string {
	return fmt.Sprintf("produce was refused with error code %d", int16(r))
}

// next reads one Produce answer, which must be the one expected, and must not be a refusal.
func (a *answers) next(correlation uint32) error {
	var head [8]byte
	if _, err := io.ReadFull(a.source, head[:]); err != nil {
		return fmt.Errorf("reading answer %d: %w", correlation, err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if got := binary.BigEndian.Uint32(head[4:]); got != correlation {
		return fmt.Errorf("answer %d came where %d was expected", got, correlation)
	}
	if size < 5 || size > responseSizeLimit {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	if cap(a.buffer) < int(size) {
		a.buffer = make([]byte, size)
	}
	body := a.buffer[:size-4]
	if _, err := io.ReadFull(a.source, body); err != nil {
		return err
	}
	answer := kmsg.ProduceResponse{Version: produceVersion}
	if err := answer.ReadFrom(body[1:]); err != nil { // after the header's empty tag section
		return err
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return refused(p.ErrorCode)
			}
		}
	}
	return nil
}

// awaitLeader sends the request until it is taken: a broker may hear that it leads a new partition a moment after
// others have told it to a client.
func awaitLeader(conn net.Conn, frame []byte) error {
	reader := newAnswers(conn)
	for deadline := time.Now().Add(leaderDeadline); ; time.Sleep(leaderPause) {
		_ = conn.SetDeadline(deadline)
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		var code refused
		switch err := reader.next(0); {
		case err == nil:
			return nil
		case !errors.As(err, &code) || time.Now().After(deadline):
			return err
		}
	}
}

// dialLeader connects to the leader of partition 0 and returns a request ready to be sent again and again.
func dialLeader(o options) (net.Conn, []byte, error) {
	topic, brokers, err := describe(o)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range topic.Partitions {
		if p.Partition != 0 {
			continue
		}
		for _, b := range brokers {
			if b.NodeID == p.Leader {
				address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
				conn, err := net.DialTimeout("tcp", address, 10*time.Second) // Go sets TCP_NODELAY
				if err != nil {
					return nil, nil, err
				}
				frame := requestFrame(o)
				return conn, frame, awaitLeader(conn, frame)
			}
		}
	}
	return nil, nil, fmt.Errorf("partition 0 of %s has no leader", o.topic)
}

func requestFrame(o options) []byte {
	request := kmsg.NewPtrProduceRequest()
	request.Version = produceVersion
	request.Acks = int16(o.acks)
	request.TimeoutMillis = produceTimeoutMs
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = o.topic
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = singleRecordBatch(o.size)
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("cotidal-bench"))
	return formatter.AppendRequest(nil, request, 0)
}

func singleRecordBatch(size int) []byte {
	record := kmsg.Record{Value: make([]byte, size)}
	record.Length = int32(len(record.AppendTo(nil)) - 1) // a zero length takes one byte
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1,
		Magic:                2,
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           1,
		Records:              record.AppendTo(nil),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[batchLengthAt:], uint32(len(raw)-12))
	sum := crc32.Checksum(raw[batchCrcCovers:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(raw[batchCrcAt:], sum)
	return raw
}
