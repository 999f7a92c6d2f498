package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease/stores"
)

func init() {
	stores.Register("teststore", func(url string) (stores.Store, error) {
		return client(wire{new(counted), func(context.Context, []byte, func() error) error {
			return errors.New("cannot connect to " + url)
		}}, 1), nil
	})
}

// No error of a store that was opened by URL contains the URL's password.
func TestErrorsAreRedacted(t *testing.T) {
	s, err := stores.Open("teststore://user:hunter2@host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Describe(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "cannot connect") {
		t.Error(err)
	}
}
