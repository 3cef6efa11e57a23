// Loadgen puts one kind of load on a Kafka-speaking cluster and prints one JSON object about it.
//
//	loadgen produce   batched records through franz-go, until -seconds or -max-bytes, whichever is first
//	loadgen consume   reads -records records from the start of a topic, without a group
//	loadgen drain     the same over raw frames, without decoding a record
//	loadgen latency   one single-record produce request at a time over one connection
//	loadgen pipelined single-record produce requests over one connection, -in-flight of them unanswered
//
// A compiled client, because a Python one enqueues some 0.3 million records a second and would then be
// what is measured. The last three speak raw frames, so that the client's own batching has no part in them.
// Every result says what the client itself cost (cpu_seconds): near one core per core it had, the client
// was the limit and the number says nothing about the server.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

type options struct {
	bootstrap  []string
	topic      string
	acks       int
	size       int
	seconds    float64
	maxBytes   int64
	records    int64
	warmup     int
	inFlight   int
	batchBytes int
}

func main() {
	if len(os.Args) < 2 {
		fail("usage: loadgen produce|consume|drain|latency|pipelined -bootstrap HOST:PORT -topic NAME ...")
	}
	verb := os.Args[1]
	o := parse(verb, os.Args[2:])
	run, known := map[string]func(options) (map[string]any, error){
		"produce":   produce,
		"consume":   consume,
		"drain":     drain,
		"latency":   latency,
		"pipelined": pipelined,
	}[verb]
	if !known {
		fail("unknown load " + verb)
	}
	result, err := run(o)
	if err != nil {
		fail(err.Error())
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err.Error())
	}
}

func parse(verb string, args []string) options {
	var o options
	var bootstrap string
	f := flag.NewFlagSet(verb, flag.ExitOnError)
	f.StringVar(&bootstrap, "bootstrap", "localhost:9092", "comma-separated brokers")
	f.StringVar(&o.topic, "topic", "", "an existing topic")
	f.IntVar(&o.acks, "acks", -1, "1 or -1 (all)")
	f.IntVar(&o.size, "size", 1024, "bytes of one record's value")
	f.Float64Var(&o.seconds, "seconds", 5, "stop after this long")
	f.Int64Var(&o.maxBytes, "max-bytes", 1<<40, "produce: stop after this many bytes of values")
	f.Int64Var(&o.records, "records", 0, "consume, latency: how many records")
	f.IntVar(&o.warmup, "warmup", 200, "latency: requests before the measured ones")
	f.IntVar(&o.inFlight, "in-flight", 100, "pipelined: unanswered requests")
	f.IntVar(&o.batchBytes, "batch-bytes", 1<<20, "produce: largest batch")
	_ = f.Parse(args)
	o.bootstrap = strings.Split(bootstrap, ",")
	if o.topic == "" {
		fail("-topic is missing")
	}
	return o
}

// cpuSeconds is what this process has used so far, in user and kernel mode.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func since(start time.Time) float64 { return time.Since(start).Seconds() }

func fail(sentence string) {
	fmt.Fprintln(os.Stderr, "loadgen: "+sentence)
	os.Exit(1)
}
