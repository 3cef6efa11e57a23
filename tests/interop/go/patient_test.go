package kgo

// What TestTxnEtl bears while brokers are killed under it. It still counts every record of each of
// its three levels: one that is lost or comes twice fails it as before.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// patientDial waits for a broker that is being started again.
func patientDial(ctx context.Context, network, host string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := dialer.DialContext(ctx, network, host)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(deadline) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// bear notes what a poll was told: that a group must be joined again, and that records were lost.
// kgo takes the epoch of the last record that it kept for that of its position; where aborted
// records of a later epoch were skipped, that position lies behind the end of the epoch.
func (c *testConsumer) bear(told []FetchError) {
	fmt.Printf("    borne by group=%s: %v\n", c.group, told)
}
