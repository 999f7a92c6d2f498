// Package watching has tests of what operators look at: that docs/metrics.md, the alerts and the
// dashboards in deploy speak of what is really exported and stored.
package watching
