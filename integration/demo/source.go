package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/boltstore" // bolt:
	"github.com/traceflake/traceflake/lease/driver"
	_ "github.com/traceflake/traceflake/lease/etcdstore" // etcd://
	_ "github.com/traceflake/traceflake/lease/pgstore"   // postgres://
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// source is where the services' IDs come from: nodes leased from a store or, with the store
// "none", a secret of this process alone.
type source struct {
	ids    *idgen.Generator
	name   string // a description
	secret string // a description of the secret's owner
	codec  *randflake.Codec
	store  driver.Store
	keeper *lease.Keeper
	folder string // of a temporary file that no other run uses
}

// patience is how long to wait for the first lease.
const patience = 2 * time.Second

const (
	secretFile = "TRACEFLAKE_SECRET_FILE"
	drawn      = "a secret drawn for this run"
)

// openSource opens the store with that URL. It also succeeds if the server does not answer: IDs
// are then random until it does. "" is a file in the user's cache folder or, if that cannot be
// used, the same as "none".
func openSource(ctx context.Context, store string) (*source, error) {
	switch store {
	case "none":
		return &source{ids: idgen.New(), name: "a secret of this process alone, without a store"}, nil
	case "":
		s := new(source)
		store, err := s.file()
		if err == nil {
			err = s.open(ctx, store)
		}
		if err == nil {
			return s, nil
		}
		return &source{ids: idgen.New(), name: "a secret of this process alone, without a store because of: " + err.Error()}, nil
	}
	s := new(source)
	return s, s.open(ctx, store)
}

func (s *source) open(ctx context.Context, store string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.store, err = driver.Open(ctx, store, driver.NodeRange{}); err != nil {
		if errors.Is(err, driver.ErrUnknownScheme) {
			err = fmt.Errorf("%w; -store none needs no store", err)
		}
		return fmt.Errorf("-store: %w", err)
	}
	if s.codec, s.secret, err = s.findSecret(); err != nil {
		return err
	}
	if s.keeper, err = lease.Start(ctx, s.store, s.codec); err != nil {
		return err
	}
	s.name = "nodes leased from " + withoutPassword(store) + ", with " + s.secret
	if s.secret == drawn {
		s.name += " (" + secretFile + " names a file with the fleet's)"
	}
	s.ids = idgen.New(idgen.WithSource(s.keeper))
	return nil
}

// file returns the URL of the store that all runs of this user share. It makes the folder.
func (s *source) file() (string, error) {
	folder, err := os.UserCacheDir()
	if err != nil { // there is no home folder
		if folder, err = os.MkdirTemp("", "traceflake-"); err != nil {
			return "", err
		}
		s.folder = folder
	}
	folder = filepath.Join(folder, "traceflake")
	return "bolt:" + filepath.Join(folder, "example.db"), os.MkdirAll(folder, 0o700)
}

// findSecret returns the store's own secret, the fleet's, or a new one.
func (s *source) findSecret() (codec *randflake.Codec, whose string, err error) {
	if own, ok := s.store.(driver.CodecStore); ok {
		return own.Codec(), "the file's secret", nil
	}
	path := os.Getenv(secretFile)
	if path == "" {
		codec, err = newSecret()
		return codec, drawn, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", secretFile, err)
	}
	defer func() { _ = file.Close() }()
	ring, err := randflake.ParseKeyring(file)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %s: %w", secretFile, path, err)
	}
	return ring.Codec(), "the secret of " + path, nil
}

func newSecret() (*randflake.Codec, error) {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	return randflake.NewCodec(secret)
}

// ready waits briefly for the first lease, and returns the reason if there is none.
func (s *source) ready(ctx context.Context) error {
	if s.keeper == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.keeper.Ready(ctx)
}

// close returns unused seconds to the store.
func (s *source) close(ctx context.Context) (err error) {
	if s.keeper != nil {
		err = s.keeper.Close(ctx)
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.folder != "" {
		err = errors.Join(err, os.RemoveAll(s.folder))
	}
	return err
}

// decode describes what the secret reveals in a trace ID.
func (s *source) decode(id trace.TraceID) string {
	if s.codec == nil {
		return "hidden, because only this process has the secret"
	}
	info := traceid.Inspect(randflake.NewKeyring(s.codec), id)
	if !info.Agree {
		return "not made with " + s.secret + ": foreign or random"
	}
	return fmt.Sprintf("node %d, second %s, sequence %d, with %s",
		info.Parts.Node, info.Parts.Time.UTC().Format(time.RFC3339), info.Parts.Sequence, s.secret)
}

// withoutPassword returns a store's URL without user and password.
func withoutPassword(store string) string {
	scheme, _, _ := strings.Cut(store, ":")
	if scheme == "bolt" {
		return store
	}
	u, err := url.Parse(store)
	if err != nil || u.Host == "" {
		return scheme
	}
	return scheme + "://" + u.Host + u.Path // without user and query
}
