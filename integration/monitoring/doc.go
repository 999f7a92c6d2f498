// Package monitoring tests what operators look at: docs/metrics.md, the alerts and the dashboards in
// deploy must match what is really exported and stored.
package monitoring
