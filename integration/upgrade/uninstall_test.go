//go:build unix

// Package upgrade plays the commands of docs/upgrade.md on real servers.
package upgrade

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// blocks returns the blocks of code of docs/upgrade.md in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	return child.Blocks(child.Read(t, "docs/upgrade.md"), language)
}

// argument returns the argument of the page's command that has this form, which has a group.
func argument(t *testing.T, form string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ +` + form + `$`).FindStringSubmatch(blocks(t, "sh")[0])
	if m == nil {
		t.Fatalf("the page has no command %s", form)
	}
	return m[1]
}

// creates creates a store with the command, as an operator does. The defaults of a URL apply.
func creates(t *testing.T, url string) {
	t.Helper()
	child.Output(t, 0, exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "lease",
		"create", "--store", url, "--secret-file", filepath.Join(t.TempDir(), "secret")))
}

// The page's statements leave nothing of the store, and nothing of the functions.
func TestUninstallFromPostgres(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	conn := server.Connect(t)
	executes := func(script string, leaves bool) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
		rows, err := conn.Query(t.Context(), `SELECT relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace
			UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace`)
		if err != nil {
			t.Fatal(err)
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || (len(left) > 0) != leaves {
			t.Errorf("%q are left, %v, by\n%s", left, err, script)
		}
	}
	creates(t, server.DSN())
	executes("", true)
	executes(argument(t, `psql postgres://host/db -c '(.+)'`), false)
	executes(child.Read(t, "contrib/postgres/functions.sql"), true)
	executes(blocks(t, "sql")[0], false)
}

// deletes creates a store, and checks that the page's command of a form, whose tool is not
// installed here, deletes the whole store. list returns the names that its argument selects.
func deletes(t *testing.T, url, form string, list func(selected string) ([]string, error)) {
	t.Helper()
	creates(t, url)
	all, err := list("")
	deleted, failed := list(argument(t, form))
	if err != nil || failed != nil || len(all) == 0 || !slices.Equal(all, deleted) {
		t.Errorf("%q of %q are deleted: %v, %v", deleted, all, err, failed)
	}
}

func TestUninstallFromEtcd(t *testing.T) {
	server := etcd.ForTest(t, 1)
	deletes(t, "etcd://"+server.Endpoints()[0], `etcdctl del --prefix (\S+)`,
		func(prefix string) (names []string, err error) {
			answer, err := server.Get(t.Context(), prefix, clientv3.WithPrefix())
			if err != nil {
				return nil, err
			}
			for _, kv := range answer.Kvs {
				names = append(names, string(kv.Key))
			}
			return names, nil
		})
}

func TestUninstallFromS3(t *testing.T) {
	server := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	deletes(t, "s3://"+s3.Bucket+"?region="+s3.Region+"&endpoint="+server.Endpoint(),
		`aws s3 rm --recursive s3://bucket/(\S+)`, func(prefix string) (names []string, err error) {
			answer, err := server.Client().ListObjectsV2(t.Context(),
				&sdk.ListObjectsV2Input{Bucket: aws.String(s3.Bucket), Prefix: &prefix})
			if err != nil {
				return nil, err
			}
			for _, o := range answer.Contents {
				names = append(names, *o.Key)
			}
			return names, nil
		})
}

func TestUninstallFromKubernetes(t *testing.T) {
	server := child.ForTest(t, kubernetes.Start)
	if err := server.Create(t.Context(),
		"{apiVersion: v1, kind: Namespace, metadata: {name: traceflake}}"); err != nil {
		t.Fatal(err)
	}
	deletes(t, "k8s://traceflake?server="+server.Proxy(kubernetes.Token(kubernetes.Admin)),
		`kubectl -n traceflake delete leases -l (\S+)`, func(selector string) ([]string, error) {
			text, err := server.Do(t.Context(), "GET", "/apis/coordination.k8s.io/v1/namespaces/"+
				"traceflake/leases?labelSelector="+selector, "", nil)
			return regexp.MustCompile(`traceflake\.[-a-z0-9]+"`).FindAllString(string(text), -1),
				err
		})
}

// The exporter can use the table without the functions, and then everything can be dropped.
func TestUninstallFromClickHouse(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	child.Output(t, 0, exec.CommandContext(t.Context(), child.Build(t, child.Traceflake),
		"clickhouse", "create", "--dsn", e.DSN()))
	drop := func(script string) {
		t.Helper()
		for statement := range strings.SplitSeq(
			strings.TrimSuffix(strings.TrimSpace(script), ";"), ";") {
			e.Rows(t, statement)
		}
	}
	drop(blocks(t, "sql")[1])
	e.Rows(t, `INSERT INTO otel_traces (Timestamp, TraceId) SELECT now(), lower(hex(1))`)
	if rows := e.Rows(t, `SELECT count() FROM otel_traces_trace_id_ts`); rows[0][0] != "1" {
		t.Errorf("%s traces are in the lookup table, want 1", rows[0][0])
	}
	drop(blocks(t, "sql")[2])
	if left := e.Rows(t, `SELECT name FROM system.functions WHERE origin = 'SQLUserDefined'
		UNION ALL SELECT name FROM system.tables
		WHERE database = currentDatabase()`); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
