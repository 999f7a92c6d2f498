package etcd

import (
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// kind is what a member is started as.
const kind = "etcd"

// Main returns at once, unless this process was started to be a member.
func Main() { child.Main(kind, member) }

// member serves with a name, a folder, its URLs for clients and peers, and the cluster's members.
func member(args []string) error {
	client, err := url.Parse(args[2])
	if err != nil {
		return err
	}
	peer, err := url.Parse(args[3])
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = args[0], args[1]
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = args[4]
	cfg.InitialClusterToken = "traceflake-test"
	cfg.LogLevel = "error"
	cfg.UnsafeNoFsync = true
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
