package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/compare"
)

// TestPage: a small table of ours has the answers of the exporter's, and an answer that differs
// is found.
func TestPage(t *testing.T) {
	page, err := groups["check"].page(t.Context(), "check")
	if errors.Is(err, child.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(page, "| a service: p99 a minute, 2 h ") {
		t.Errorf("%v\n%s", err, page)
	}
	one := compare.Table{Title: "a 1 %", Values: []compare.Value{{Name: "x", Answer: "1"}}}
	two := compare.Table{Title: "b 1 %", Values: []compare.Value{{Name: "x", Answer: "2"}}}
	if same([]compare.Table{one}, two) == nil || same([]compare.Table{one}, one) != nil {
		t.Error("a different answer is not found")
	}
	two.Title = "b 0 %" // other IDs
	if err := same([]compare.Table{one}, two); err != nil {
		t.Error(err)
	}
}
