package monitoring_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/integration/servers/child"
)

var (
	// texts, times, functions
	ignored = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|\w+( by)? *\(|\b(and|or)\b`)
	word    = regexp.MustCompile(`[a-z]\w*`)
	matcher = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"$]*)"`) // without variables
)

// check compares a PromQL expression with what is exported, and returns its series.
func check(expr string, all map[string]measured) (used []string, err error) {
	// the labels of its series, with their values
	labels := map[string][]string{"job": nil, "instance": nil}
	words := word.FindAllString(ignored.ReplaceAllString(expr, " "), -1)
	for _, name := range words {
		if m, ok := all[name]; ok {
			used = append(used, name)
			for attribute, values := range m.attributes {
				label := strings.ReplaceAll(attribute, ".", "_")
				labels[label] = append(labels[label], values...)
			}
		}
	}
	if len(used) == 0 {
		return nil, fmt.Errorf("%s has no series", expr)
	}
	for _, name := range words {
		if _, ok := labels[name]; !ok && !slices.Contains(used, name) {
			return nil, fmt.Errorf("%s: there is no series or label %s", expr, name)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		for value := range strings.SplitSeq(m[2], "|") {
			if value != "" && !slices.Contains(labels[m[1]], value) {
				return nil, fmt.Errorf("%s: %s is never %q", expr, m[1], value)
			}
		}
	}
	return used, nil
}

func TestCheck(t *testing.T) {
	all := exported(t)
	for _, wrong := range []string{
		`traceflake_id_fallbacks`,
		`sum(traceflake_id_fallbacks_total{reason="no_lease"})`,
		`sum(traceflake_id_fallbacks_total{error_type="nolease"})`,
		`sum(traceflake_lease_drops_total{traceflake_lease_drop_reason="lost"})`,
		`sum(traceflake_lease_drops_total{traceflake_lease_reason="cloned"})`,
		`sum by (operation) (traceflake_lease_requests_total)`,
		`1`,
	} {
		if _, err := check(wrong, all); err == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}

// pages is where operators read the pages of this repository.
const pages = "https://github.com/traceflake/traceflake/blob/main/"

// anchors returns the names that GitHub gives to the sections of a page.
func anchors(t *testing.T, page string) (names []string) {
	t.Helper()
	dropped := regexp.MustCompile(`[^\w\- ]`)
	headings := regexp.MustCompile(`(?m)^#+ (.+)$`)
	for _, heading := range headings.FindAllStringSubmatch(child.Read(t, page), -1) {
		names = append(names,
			strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return names
}

// Alerts use exported series only, their runbook exists, and every alert has a test in which it
// fires and one in which it does not.
func TestAlerts(t *testing.T) {
	all := exported(t)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alertname string
				Fires     []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for file, into := range map[string]any{"rules": &rules, "test": &tests} {
		text := child.Read(t, "deploy/prometheus/traceflake."+file+".yml")
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				fires[c.Alertname] = true
			} else {
				quiet[c.Alertname] = true
			}
		}
	}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if _, err := check(r.Expr, all); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			page, anchor, _ := strings.Cut(strings.TrimPrefix(r.Annotations["runbook_url"], pages),
				"#")
			if !slices.Contains(anchors(t, page), anchor) {
				t.Errorf("%s: there is no section %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s needs a test in which it fires (has one: %t) and one in which it "+
					"does not (%t)", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
		}
	}
}
