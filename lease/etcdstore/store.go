package etcdstore

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

func init() {
	stores.Register("etcd", openURL)
	stores.Register("etcds", openURL)
}

const (
	name = "etcdstore" // for errors

	// defaultPrefix begins every key unless [New] or the URL sets another prefix.
	defaultPrefix = "/traceflake/leases/"

	// blocksPerPage counts the blocks of a new store that share a key: few processes write the same
	// key, and values are small.
	blocksPerPage = 64

	urlForm = "etcd://user:password@host:port,host:port/prefix, or etcds://… for TLS"
)

// New returns a store in the etcd of client, which the caller must close. Every key begins with
// prefix; "" is /traceflake/leases/. Fleets with different secrets need different prefixes; no
// prefix may begin with another. New does not connect. Errors of invalid arguments wrap
// [lease.ErrInvalidRequest].
func New(client clientv3.KV, prefix string) (stores.Store, error) {
	if client == nil || client == (*clientv3.Client)(nil) {
		return nil, driver.Invalid("%s: no client", name)
	}
	return (&objects{kv: client}).store(prefix)
}

// openURL opens the store at an etcd:// or etcds:// URL. Query parameters of etcds name files in
// PEM form: ca, cert, key.
func openURL(text string) (stores.Store, error) {
	var parameters []string
	encrypted := strings.HasPrefix(text, "etcds:")
	if encrypted {
		parameters = []string{"ca", "cert", "key"}
	}
	u, err := driver.ParseURL(name, text, urlForm, parameters...)
	if err != nil {
		return nil, err
	}
	present, protocol := insecure.NewCredentials(), "http://"
	if encrypted {
		files := transport.TLSInfo{TrustedCAFile: u.Query().Get("ca"),
			CertFile: u.Query().Get("cert"), KeyFile: u.Query().Get("key")}
		if present, err = fromFiles(files); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		present, protocol = secured{present, files}, "https://"
	}
	s := &objects{scheme: u.Scheme}
	config := s.configure(present)
	for host := range strings.SplitSeq(u.Host, ",") {
		if host == "" {
			return nil, fmt.Errorf("%s: want %s", name, urlForm)
		}
		if (&url.URL{Host: host}).Port() == "" {
			host += ":2379"
		}
		config.Endpoints = append(config.Endpoints, protocol+host)
	}
	if u.User != nil {
		config.Username = u.User.Username()
		config.Password, _ = u.User.Password()
	}
	if err := s.connect(config); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s.store(strings.TrimSuffix(u.Path, "/"))
}

func (s *objects) store(prefix string) (stores.Store, error) {
	// or it might be a prefix of another
	s.prefix = strings.TrimSuffix(cmp.Or(prefix, defaultPrefix), "/") + "/"
	return stores.New(s, driver.Layout{Name: name, BlocksPerPage: blocksPerPage})
}
