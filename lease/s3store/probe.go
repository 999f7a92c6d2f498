package s3store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/internal/pages"
)

const (
	// probes begins the names of the objects that probes write. They stay:
	// the store needs no right to delete. There are many of them, because
	// servers limit how often one object is written, and processes may start
	// together.
	probes     = "probe/"
	probeCount = 256
	probeText  = `{"purpose":"to learn whether this server honours If-Match and If-None-Match"}` + "\n"

	ignores = "this server ignores conditional writes, so it would grant leases twice; use one that honours If-Match and If-None-Match in PutObject"
)

// wrongTag is the ETag of nothing.
var wrongTag = strings.Repeat("0", 32)

// probed returns nil after a probe has succeeded, once for this store.
func (s *server) probed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case _, unproven := <-s.probing:
		if !unproven {
			return nil
		}
	}
	var err error
	name := fmt.Sprintf("%s%02x", probes, rand.N(probeCount))
	for try := 1; try <= tries; try++ {
		if err = s.probe(ctx, name); !errors.Is(err, errConflict) {
			break
		}
		if err = pause(ctx, try); err != nil {
			break
		}
	}
	if err != nil {
		s.probing <- struct{}{}
		return err
	}
	close(s.probing)
	return nil
}

// probe returns an error unless the server refuses writes whose condition does
// not hold, takes one whose condition holds, and lists the version that it
// reads. It always writes the same text, so that the probes of many processes
// disturb each other only where an ETag says more than what was written.
func (s *server) probe(ctx context.Context, name string) error {
	found, err := s.Read(ctx, name)
	if err == nil && found.Version == "" {
		if _, err = s.put(ctx, name, []byte(probeText), ""); err == nil || errors.Is(err, pages.ErrChanged) {
			found, err = s.Read(ctx, name)
		}
	}
	if err != nil {
		return err
	}
	if found.Version == "" {
		return s.unfit(putObject, name, "an object that was just written is not there")
	}
	for _, wrong := range []struct{ version, condition string }{
		{"", "If-None-Match: *"},
		{wrongTag, "a wrong If-Match"},
	} {
		_, err := s.put(ctx, name, []byte(probeText), wrong.version)
		switch {
		case err == nil:
			return s.unfit(putObject, name, fmt.Sprintf("it replaced an object in spite of %s: %s", wrong.condition, ignores))
		case errors.Is(err, errConflict) || !errors.Is(err, pages.ErrChanged):
			return err
		}
	}
	right, err := s.put(ctx, name, []byte(probeText), found.Version)
	switch {
	case errors.Is(err, errConflict):
		return err
	case errors.Is(err, pages.ErrChanged):
		// That is right if another process wrote it meanwhile.
		again, err := s.Read(ctx, name)
		if err != nil {
			return err
		}
		if again.Version == found.Version {
			return s.unfit(putObject, name, "it refuses a write whose If-Match is the object's ETag")
		}
		right = again
	case err != nil:
		return err
	}
	listed, err := s.list(ctx, s.prefix+name)
	if err != nil {
		return err
	}
	if listed[name] == right.Version {
		return nil
	}
	again, err := s.Read(ctx, name)
	if err == nil && again.Version == right.Version {
		err = s.unfit(listBucket, name, fmt.Sprintf("it lists the ETag %q of an object whose ETag is %q", listed[name], again.Version))
	}
	return err
}

func (s *server) unfit(right, name, why string) error {
	return s.failed(right, name, fmt.Errorf("%w: %s", lease.ErrMisconfigured, why))
}
