package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/stores"
)

// other describes another store.
func other() lease.Description {
	d := describe(few(8))
	d.ID = strings.Repeat("f", 32)
	return d
}

// A page of another store that appears during a creation is not taken over.
func TestCreateMeetsForeignPage(t *testing.T) {
	server, elsewhere := new(counted), new(counted)
	if err := client(elsewhere, 2).Create(t.Context(), other()); err != nil {
		t.Fatal(err)
	}
	page, err := elsewhere.Read(t.Context(), "page-0001")
	if err != nil {
		t.Fatal(err)
	}
	err = client(writes(server, func(name string, send func() error) error {
		if name == "page-0001" {
			_, _ = server.Write(t.Context(), name, page.Data, "")
		}
		return send()
	}), 2).Create(t.Context(), describe(few(8)))
	wantErr(t, "create", err, lease.ErrReplaced)
	_, err = client(server, 2).Describe(t.Context())
	wantErr(t, "describe", err, lease.ErrNoStore)
}

// Where objects are lost, nothing is created again.
func TestLostObjects(t *testing.T) {
	server := new(counted)
	old := open(server, 2, few(8))
	g := mustAcquire(t, old, request(t0))
	backup := save(t, server)
	server.Delete("config")
	_ = mustRenew(t, old, g) // whoever knows the nonce may renew
	wantWrites(t, "new clients", server, 0, func() {
		for _, call := range calls.OnBlocks(t.Context(), client(server, 2), g, t0) {
			wantErr(t, call.Name, call.Err, lease.ErrNoStore)
		}
		wantErr(t, "create", client(server, 2).Create(t.Context(), other()), lease.ErrExists)
		wantErr(t, "add secret", old.AddSecret(t.Context(), storeID, fingerprint),
			lease.ErrNoStore)
		wantErr(t, "replace", old.Replace(t.Context(), storeID, nextID, fingerprint),
			lease.ErrNoStore)
	})
	load(t, server, backup)
	server.Delete("page-0002")
	_, err := old.Get(t.Context(), block(2*2*8))
	wantErr(t, "get", err, driver.ErrEdited)
	_, err = old.List(t.Context())
	wantErr(t, "list", err, driver.ErrEdited)
	for err = nil; err == nil; {
		_, err = old.Acquire(t.Context(), request(t0))
	}
	wantErr(t, "acquire", err, driver.ErrEdited)
	// It is not needed for a new history.
	if err := old.Replace(t.Context(), storeID, nextID, fingerprint); err != nil {
		t.Error(err)
	}
}

// A change that others always precede ends with an error, even if its context has no deadline.
func TestOthersAlwaysWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, n := new(counted), 0
		other := open(server, 2, few(2))
		g := mustAcquire(t, other, request(t0))
		_, err := open(writes(server, func(_ string, send func() error) error {
			n++
			g = mustRenew(t, other, g)
			return send()
		}), 2, few(2)).Acquire(t.Context(), request(t0))
		const want = "page-0000: another client wrote it first in each of 50 attempts"
		if err == nil || !strings.Contains(err.Error(), want) || n != 50 {
			t.Errorf("%v after %d writes, want %s", err, n, want)
		}
	})
}

// What a server says it stored is compared with what was sent.
func TestOtherAnswers(t *testing.T) {
	for name, answer := range map[string]func(version string) driver.Object{
		"the old data": func(version string) driver.Object { // as a webhook may keep it
			return driver.Object{Version: "next", Data: []byte(version)}
		},
		"the old version": func(version string) driver.Object {
			return driver.Object{Version: version}
		},
		"no object": func(string) driver.Object { return driver.Object{} },
	} {
		server := new(counted)
		open(server, 2, few(2))
		altered := flawed{server, func(w write) (driver.Object, error) {
			return answer(w.version), nil
		}}
		_, err := client(altered, 2).Acquire(t.Context(), request(t0))
		wantErr(t, name, err, engine.ErrAltered)
		wantUnknown(t, name, err)
		if altered.counted = new(counted); name == "the old data" {
			wantErr(t, "create with a probe", probed(t.Context(), altered), engine.ErrAltered)
		}
	}
	// Create detects a server that returns nothing and stores nothing.
	swallows := flawed{new(counted), func(write) (driver.Object, error) {
		return driver.Object{Version: "next"}, nil
	}}
	wantErr(t, "create", client(swallows, 2).Create(t.Context(), other()), lease.ErrMisconfigured)
}

func TestLayout(t *testing.T) {
	server, unaligned := new(counted), describe(few(8))
	unaligned.First = 4
	wantWrites(t, "create unaligned blocks", server, 0, func() {
		wantErr(t, "create", client(server, 2).Create(t.Context(), unaligned),
			lease.ErrInvalidRequest)
	})
	for perPage, good := range map[uint32]bool{0: false, 1: true, 1 << 17: true, 1<<17 + 1: false,
		1<<32 - 1: false} {
		_, err := stores.New(&counted{}, driver.Layout{Name: "teststore", BlocksPerPage: perPage})
		if good {
			mustAcquire(t,
				open(&counted{}, perPage, lease.Description{Nodes: 1 << 17, BlockSize: 1 << 12}),
				request(t0))
		} else {
			wantErr(t, fmt.Sprint(perPage, " blocks on a page"), err, lease.ErrInvalidRequest)
		}
	}
}
