package k8sstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const (
	apiVersion = "coordination.k8s.io/v1"
	// The value of fleetLabel is the store's name, the value of pageAnnotation the page.
	fleetLabel     = "traceflake.github.io/leases"
	pageAnnotation = "traceflake.github.io/page"
)

// objects is a [driver.Objects] on the Leases of one store.
type objects struct {
	client    *http.Client
	server    string // the URL of the API server, without a slash at the end
	account   string // the directory with a token, or "" if the client authenticates
	namespace string
	name      string // of the store
}

// Close closes idle connections.
func (o *objects) Close() error {
	o.client.CloseIdleConnections()
	return nil
}

// object is a Lease as it is sent, and the fields that are read.
type object struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   metadata `json:"metadata"`
}

type metadata struct {
	Name            string `json:"name"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// DeletionTimestamp is set while finalizers keep a deleted object.
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// version identifies a write. Without the uid, a recreated object could be mistaken for the deleted
// one.
func (m metadata) version() string { return m.UID + "/" + m.ResourceVersion }

// nameOf returns the name of a page's object. A store's name has no dot, so no object's name can
// belong to two stores.
func (o *objects) nameOf(page string) string { return o.name + "." + page }

// Prepare implements [driver.Objects]. It creates "config" without data: its UID is the place.
func (o *objects) Prepare(ctx context.Context) error {
	r, err := o.write("config", nil, "")
	if err == nil {
		_, err = o.page(ctx, "config", r)
	}
	if changed(err) {
		return nil
	}
	return err
}

// Read implements [driver.Objects].
func (o *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	found, err := o.page(ctx, name,
		request{verb: "get", method: http.MethodGet, path: "/" + o.nameOf(name)})
	if missing(err, "leases") {
		err = nil
	}
	if name == "config" && len(found.Data) == 0 {
		found.Version = "" // only Prepare has written it
	}
	return found, err
}

// Write implements [driver.Objects]. The server cannot compare the place.
func (o *objects) Write(ctx context.Context, name string, data []byte,
	version, _ string) (driver.Object, error) {
	if name == "config" && version == "" {
		found, err := o.page(ctx, name,
			request{verb: "get", method: http.MethodGet, path: "/" + o.nameOf(name)})
		switch {
		case missing(err, "leases"):
		case err != nil:
			return driver.Object{}, err
		case len(found.Data) > 0:
			return driver.Object{}, driver.ErrChanged
		}
		version = found.Version
	}
	r, err := o.write(name, data, version)
	if err != nil {
		return driver.Object{}, err
	}
	written, err := o.page(ctx, name, r)
	if changed(err) {
		err = driver.ErrChanged
	}
	return written, err
}

// write returns the request that replaces an object with a version, or creates it.
func (o *objects) write(name string, data []byte, version string) (r request, err error) {
	next := object{APIVersion: apiVersion, Kind: "Lease", Metadata: metadata{
		Name:        o.nameOf(name),
		Labels:      map[string]string{fleetLabel: o.name},
		Annotations: map[string]string{pageAnnotation: string(data)},
	}}
	r = request{verb: "create", method: http.MethodPost}
	if version != "" {
		r = request{verb: "update", method: http.MethodPut, path: "/" + o.nameOf(name)}
		next.Metadata.UID, next.Metadata.ResourceVersion, _ = strings.Cut(version, "/")
	}
	r.body, err = json.Marshal(next)
	return r, err
}

// changed reports whether a server refused a write because the object has another version.
func changed(err error) bool {
	s, ok := errors.AsType[*status](err)
	return ok && s.Code == http.StatusConflict || missing(err, "leases")
}

// page sends a request whose response is a page. After an error the object has only a time.
func (o *objects) page(ctx context.Context, name string, r request) (driver.Object, error) {
	var l object
	at, err := o.do(ctx, r, &l)
	if err == nil {
		err = o.check(l, name)
	}
	if err != nil {
		return driver.Object{Time: at}, o.failed(r, err)
	}
	found := driver.Object{Data: []byte(l.Metadata.Annotations[pageAnnotation]),
		Version: l.Metadata.version(), Time: at}
	if name == "config" { // each object has its own UID
		found.Place = "Lease " + l.Metadata.UID
	}
	return found, nil
}

// CheckRights sends writes that are not carried out: of an object with a UID that none has, and a
// dry run; see [driver.Objects]. API servers check the client's rights first. Who begins a history
// creates Leases that were deleted.
func (o *objects) CheckRights(ctx context.Context) error {
	for _, try := range []struct{ version, query string }{{"none/1", ""}, {"", "dryRun=All"}} {
		r, err := o.write("config", nil, try.version)
		if err != nil {
			return err
		}
		r.query = try.query
		if _, err := o.do(ctx, r, new(object)); err != nil && !changed(err) {
			return o.failed(r, err)
		}
	}
	return nil
}

// check returns an error unless the response is a Lease and a page of this store.
func (o *objects) check(l object, page string) error {
	m := l.Metadata
	if l.Kind != "Lease" || l.APIVersion != apiVersion || m.Name != o.nameOf(page) || m.UID == "" ||
		m.ResourceVersion == "" {
		return errOther
	}
	if m.DeletionTimestamp != "" {
		return fmt.Errorf("the Lease %q is being deleted: a grant on it would be lost; "+
			"remove its finalizers, then begin a history: traceflake lease rekey", m.Name)
	}
	if _, ok := m.Annotations[pageAnnotation]; !ok || m.Labels[fleetLabel] != o.name {
		return fmt.Errorf("%w: Lease %q has no annotation %s or no label %s=%s: it is not a page "+
			"of this store, or somebody changed it",
			lease.ErrSchemaVersion, m.Name, pageAnnotation, fleetLabel, o.name)
	}
	return nil
}
