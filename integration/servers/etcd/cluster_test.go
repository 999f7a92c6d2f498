package etcd

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func TestClusterKeepsItsDataWithoutItsLeader(t *testing.T) {
	c := ForTest(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := c.ClientForTest(t)
	if _, err := client.Put(ctx, "key", "value"); err != nil {
		t.Fatal(err)
	}
	leader, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(leader); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := client.Get(ctx, "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("got %v, %v", got, err)
	}
	next, err := c.Leader(ctx)
	if err != nil || next == leader {
		t.Errorf("the leader is %d, %v; it was %d", next, err, leader)
	}
	for i := range 3 {
		if err := c.Kill(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := c.Run(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Get(ctx, "key"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("after all were killed: got %v, %v", got, err)
	}
}
