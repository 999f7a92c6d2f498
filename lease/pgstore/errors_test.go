package pgstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// Each error says once what is wrong, and is permanent exactly if retrying cannot help.
func TestErrors(t *testing.T) {
	dsn, admin := newDatabase(t)
	write(t, calls.Objects(t, dsn), "page-0000", "1", "")
	execute(t, admin, `CREATE SCHEMA customers;
		CREATE TABLE customers.traceflake_store (what text)`)
	reader, outsider, full := newRole(t, admin), newRole(t, admin), newRole(t, admin)
	execute(t, admin, "GRANT SELECT ON traceflake_store TO "+reader)
	execute(t, admin, "ALTER ROLE "+outsider+" NOLOGIN")
	execute(t, admin, "ALTER ROLE "+full+" CONNECTION LIMIT 0")
	config := admin.Config().ConnConfig
	// parameters for two addresses: both of the server, or the second or the first one alone
	hosts := "host=" + config.Host + "," + config.Host + "&port="
	twice := fmt.Sprint(hosts, config.Port, ",", config.Port)
	half := fmt.Sprint(hosts, "1,", config.Port)
	first := fmt.Sprint(hosts, config.Port, ",1")
	const read, write = false, true
	const readOnly = "default_transaction_read_only=on&target_session_attrs=read-write"
	for _, c := range []struct {
		parameters string // in addition to those of the database, or instead
		writes     bool
		want       error
		text       string
	}{
		{"foo=bar", read, lease.ErrMisconfigured, "remove the parameter"},
		{"timezone=Mars", read, lease.ErrMisconfigured, "invalid value"},
		{"sslmode=require", read, lease.ErrMisconfigured, "refuses TLS"},
		{"dbname=missing", read, lease.ErrMisconfigured, "create the database"},
		{"user=missing", read, lease.ErrMisconfigured, "correct user and password"},
		{twice + "&user=missing", read, lease.ErrMisconfigured, `user "missing"`},
		// The client tries TLS first, which is not the cause.
		{"sslmode=prefer&password=hunter2&user=" + outsider, read, lease.ErrMisconfigured,
			"let the role log in"},
		{"password=hunter2&user=" + full, read, nil, "raise its limit"},
		{"password=hunter2&user=" + reader, read, lease.ErrMisconfigured,
			"SELECT, INSERT and UPDATE"},
		{"search_path=missing", write, lease.ErrMisconfigured, "create the schema first"},
		{"search_path=customers", read, lease.ErrSchemaVersion, "column"},
		{"default_transaction_read_only=on", read, nil, "connect to the primary"},
		{readOnly, read, nil, "connect to the primary"},
		{"sslmode=prefer&" + readOnly, read, nil, "connect to the primary"},
		{"port=1", read, nil, "connection refused"},
		{"host=no..host,no..host", read, nil, "lookup"},
		{first + "&sslmode=require", read, nil, "refuses TLS"},
		{half + "&user=missing", read, nil, `user "missing"`},
	} {
		o := calls.Objects(t, dsn+"&"+c.parameters)
		_, err := o.Read(t.Context(), "page-0000")
		if c.writes {
			_, err = calls.Write(t.Context(), o, "page-0000", "1", "")
		}
		wantError(t, c.parameters, err, c.want, c.text)
		if lease.Permanent(err) != (c.want != nil) {
			t.Errorf("%s: %v is permanent: %t", c.parameters, err, lease.Permanent(err))
		}
		text := fmt.Sprint(err)
		for _, once := range []string{"lookup", "authentication failed",
			"connection refused"} {
			if strings.Count(text, once) > 1 || strings.Contains(text, "failed to connect") {
				t.Errorf("error %q says more than once what is wrong", text)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	_, err := pgstore.New(nil)
	wantError(t, "no configuration", err, lease.ErrInvalidRequest, "configuration")
	for parameters, text := range map[string]string{
		"search_path=a,b":             "search_path is a,b, want the one schema",
		"sslmode=required":            "sslmode is invalid); set sslmode to one of disable,",
		"target_session_attrs=primry": "primry; set target_session_attrs=read-write",
		"connect_timeout=now": "connect_timeout (strconv.ParseInt: parsing \"now\": " +
			"invalid syntax); correct the parameter",
		"servicefile=/none&service=a":  "; let PGSERVICEFILE name a file",
		"sslmode=prefer&sslrootcert=/": "sslrootcert name a file that exists",
	} {
		_, err := stores.Open("postgres://user:hunter2@host/db?" + parameters)
		wantError(t, parameters, err, lease.ErrInvalidRequest, text)
	}
	for url, text := range map[string]string{
		"postgres://user:hunter2@host:port/":          "invalid port; correct the parameter",
		"postgres://user:%hunter2@host/db":            "special characters of the password",
		"postgres://app:hunter2@hunter2@127.0.0.1/db": "special characters of the password",
	} {
		_, err := stores.Open(url)
		wantError(t, text, err, lease.ErrInvalidRequest, text)
	}
}
