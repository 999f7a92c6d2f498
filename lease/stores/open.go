package stores

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/traceflake/traceflake/internal/mistakes"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease/driver"
)

// packages maps the schemes of this project to the packages to import.
var packages = map[string]string{
	"file":       "filestore",
	"postgres":   "pgstore",
	"postgresql": "pgstore",
	"etcd":       "etcdstore",
	"etcds":      "etcdstore",
	"k8s":        "k8sstore",
	"s3":         "s3store",
}

var openers = struct {
	sync.RWMutex
	byScheme map[string]func(url string) (Store, error)
}{byScheme: map[string]func(string) (Store, error){}}

// Register registers a store for a URL scheme, in lower case and without the colon. Packages of
// stores call it when they are imported. It panics if the scheme is taken.
//
// open sends no request: a server that is unreachable now may come back. Its errors never contain
// the URL, which may contain a password.
func Register(scheme string, open func(url string) (Store, error)) {
	openers.Lock()
	defer openers.Unlock()
	if _, taken := openers.byScheme[scheme]; taken || open == nil {
		panic("stores: Register of " + scheme + ": the scheme is taken, or the opener nil")
	}
	openers.byScheme[scheme] = open
}

// Schemes returns how the URLs of the registered stores begin, sorted: "file:", "postgres://".
func Schemes() []string {
	openers.RLock()
	defer openers.RUnlock()
	schemes := slices.Sorted(maps.Keys(openers.byScheme))
	for i, scheme := range schemes {
		schemes[i] += "://"
		if scheme == "file" {
			schemes[i] = "file:" // and a path
		}
	}
	return schemes
}

// Open opens the store at url, such as "file:DIR" or "postgres://…", depending on the imported
// packages, as with database/sql. It sends no request. Spaces around the URL are ignored. Errors
// wrap [lease.ErrInvalidRequest]. Neither they nor those of the store's methods contain a part of
// the URL's password.
func Open(url string) (Store, error) {
	url = strings.TrimSpace(url)
	scheme, _, ok := strings.Cut(url, ":")
	openers.RLock()
	open := openers.byScheme[scheme]
	openers.RUnlock()
	if !ok || open == nil {
		return nil, advise(url, unknown(scheme))
	}
	if mistakes.Misread(url) != "" {
		return nil, advise(url, driver.Invalid("the URL is not the one that was meant"))
	}
	s, err := open(url)
	if err != nil {
		err = advise(url, driver.Invalid("%w", err))
	}
	secrets := redact.Of(url)
	if s, ok := s.(interface{ Redact(redact.Secrets) }); ok {
		s.Redact(secrets)
	}
	return s, secrets.Error(err)
}

// unknown returns the error for a URL whose scheme is not registered. The text may be a path or a
// password, so it is not repeated.
func unknown(scheme string) error {
	imported := strings.Join(Schemes(), ", ")
	if name := packages[scheme]; name != "" {
		return driver.Invalid("unknown kind of store: %s: import _ %q in the program, which has %s",
			scheme, "github.com/traceflake/traceflake/lease/"+name, imported)
	}
	return driver.Invalid("unknown kind of store: its URL must begin with one of: %s; for another "+
		"kind of store import its package", imported)
}
