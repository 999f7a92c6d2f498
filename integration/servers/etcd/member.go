package etcd

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// The environment variables of a member.
const (
	envName    = "TRACEFLAKE_ETCD_MEMBER"
	envDir     = "TRACEFLAKE_ETCD_DIR"
	envClient  = "TRACEFLAKE_ETCD_CLIENT_URL"
	envPeer    = "TRACEFLAKE_ETCD_PEER_URL"
	envCluster = "TRACEFLAKE_ETCD_CLUSTER"
)

// Main returns at once, unless this process was started to be a member.
func Main() {
	name := os.Getenv(envName)
	if name == "" {
		return
	}
	if err := member(name); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func member(name string) error {
	// A member ends with the process that started it, even if that is killed.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	client, err := url.Parse(os.Getenv(envClient))
	if err != nil {
		return err
	}
	peer, err := url.Parse(os.Getenv(envPeer))
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = name, os.Getenv(envDir)
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = os.Getenv(envCluster)
	cfg.InitialClusterToken = "traceflake-test"
	cfg.LogLevel = "error"
	cfg.TickMs, cfg.ElectionMs = 50, 500
	cfg.BcryptCost = 4 // a login in milliseconds, even under the race detector
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return err
	case <-time.After(time.Minute):
		return errors.New("not ready within a minute")
	}
	return <-server.Err()
}
