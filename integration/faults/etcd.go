package faults

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// EtcdProxy is a proxy for clients of etcd's keys.
type EtcdProxy struct {
	etcdserverpb.UnimplementedKVServer
	Counts
	kv      etcdserverpb.KVClient
	address string
}

// Etcd returns a proxy for the etcd of a client, which stays open until the
// test ends.
func Etcd(tb testing.TB, client *clientv3.Client) *EtcdProxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &EtcdProxy{kv: etcdserverpb.NewKVClient(client.ActiveConnection()), address: l.Addr().String()}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, p)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	tb.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return p
}

// Address is host:port of the proxy.
func (p *EtcdProxy) Address() string { return p.address }

// Range implements [etcdserverpb.KVServer].
func (p *EtcdProxy) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return through(ctx, p, func(ctx context.Context) (*etcdserverpb.RangeResponse, error) { return p.kv.Range(ctx, r) })
}

// Txn implements [etcdserverpb.KVServer].
func (p *EtcdProxy) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return through(ctx, p, func(ctx context.Context) (*etcdserverpb.TxnResponse, error) { return p.kv.Txn(ctx, r) })
}

// Put implements [etcdserverpb.KVServer].
func (p *EtcdProxy) Put(ctx context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	return through(ctx, p, func(ctx context.Context) (*etcdserverpb.PutResponse, error) { return p.kv.Put(ctx, r) })
}

var errGone = status.Error(codes.Unavailable, "the connection is gone")

func through[T any](ctx context.Context, p *EtcdProxy, call func(context.Context) (*T, error)) (*T, error) {
	f := p.draw()
	again := func() {
		time.Sleep(while())
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _ = call(ctx)
	}
	switch f {
	case slow:
		time.Sleep(moment())
	case requestLost:
		return nil, errGone
	case answerLost:
		_, _ = call(ctx)
		return nil, errGone
	case late:
		go again()
		return nil, errGone
	case doubled:
		go again()
	}
	return call(ctx)
}
