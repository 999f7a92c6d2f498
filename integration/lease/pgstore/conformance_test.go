package pgstore

import (
	"net/url"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestConformance(t *testing.T) {
	server := servers.PostgresForTest(t)
	leasetest.Run(t, harness(server.DSN(), server.Connect(t)))
}

// Settings of a database or role that change how things look or work.
func TestConformanceUnderOtherSettings(t *testing.T) {
	server := servers.PostgresForTest(t)
	settings := url.Values{
		"default_transaction_isolation": {"serializable"},
		"datestyle":                     {"German"},
		"timezone":                      {"Asia/Kathmandu"},
		"bytea_output":                  {"escape"},
		"synchronous_commit":            {"off"},
		"client_min_messages":           {"error"},
	}
	leasetest.Run(t, harness(server.DSN()+"&"+settings.Encode(), server.Connect(t)))
}
