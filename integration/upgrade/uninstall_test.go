//go:build unix

package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

func TestMain(m *testing.M) { kubernetes.Main(m) }

// blocks returns the blocks of code of docs/upgrade.md in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	return child.Blocks(child.Read(t, "docs/upgrade.md"), language)
}

// arguments returns the arguments of the page's command that has this form, which has groups.
func arguments(t *testing.T, form string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ +` + form + `$`).FindStringSubmatch(blocks(t, "sh")[0])
	if m == nil {
		t.Fatalf("the page has no command %s", form)
	}
	return m[1:]
}

// creates creates a store with the command, as an operator does. The defaults of a URL apply.
func creates(t *testing.T, url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "lease", "create",
		"--store", url)
	if !strings.HasPrefix(url, "file:") {
		cmd.Args = append(cmd.Args, "--secret-file", filepath.Join(t.TempDir(), "secret"))
	}
	child.Output(t, 0, cmd)
}

// check checks how many things of ours there are.
func check(t *testing.T, when string, left []string, some bool) {
	t.Helper()
	if (len(left) > 0) != some {
		t.Errorf("%s there are %d: %.300q", when, len(left), left)
	}
}

// texts returns the only column of a query.
func texts(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func execute(t *testing.T, conn *pgx.Conn, script string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
}

// The page's statements leave nothing of the store, and nothing of the functions.
func TestUninstallFromPostgres(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	conn := server.Connect(t)
	left := func() []string {
		return texts(t, conn, `SELECT relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace
			UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace`)
	}
	check(t, "at first", left(), false)
	creates(t, server.DSN())
	execute(t, conn, arguments(t, `psql postgres://host/db -c '(.+)'`)[0])
	check(t, "without the store", left(), false)

	functions := child.Output(t, 0, exec.CommandContext(t.Context(),
		child.Build(t, child.Traceflake), "postgres", "--schema", "public"))
	_, functions, _ = strings.Cut(functions, "\n") // which is for psql
	execute(t, conn, functions)
	check(t, "with functions", left(), true)
	execute(t, conn, blocks(t, "sql")[0])
	check(t, "without functions", left(), false)
}

// The tools are not installed here: the tests below send the requests that they would send.

func TestUninstallFromEtcd(t *testing.T) {
	server := etcd.ForTest(t, 1)
	creates(t, "etcd://"+server.Endpoints()[0])
	if _, err := server.Delete(t.Context(), arguments(t, `etcdctl del --prefix (\S+)`)[0],
		clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	answer, err := server.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || answer.Count > 0 {
		t.Errorf("%d keys are left, %v", answer.Count, err)
	}
}

func TestUninstallFromKubernetes(t *testing.T) {
	server := kubernetes.Shared(t)
	args := arguments(t, `kubectl -n (\S+) delete leases -l (\S+)`)
	if err := server.Apply(t.Context(),
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+args[0]+"}}"); err != nil {
		t.Fatal(err)
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + args[0] + "/leases"
	left := func() []string {
		text, err := server.Do(t.Context(), "GET", leases, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`traceflake\.[-a-z0-9]+"`).FindAllString(string(text), -1)
	}
	creates(t, "k8s://"+args[0]+"?server="+server.Proxy(kubernetes.Token(kubernetes.Admin)))
	check(t, "created", left(), true)
	if _, err := server.Do(t.Context(), "DELETE", leases+"?labelSelector="+args[1], "",
		nil); err != nil {
		t.Fatal(err)
	}
	check(t, "deleted", left(), false)
}

func TestUninstallFromS3(t *testing.T) {
	server := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	client, bucket := server.Client(), aws.String(s3.Bucket)
	left := func(prefix string) (keys []string) {
		pages := sdk.NewListObjectsV2Paginator(client, &sdk.ListObjectsV2Input{Bucket: bucket,
			Prefix: aws.String(prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Contents {
				keys = append(keys, *o.Key)
			}
		}
		return keys
	}
	creates(t, "s3://"+s3.Bucket+"?region="+s3.Region+"&endpoint="+server.Endpoint())
	check(t, "created", left(""), true)
	for _, key := range left(arguments(t, `aws s3 rm --recursive s3://bucket/(\S+)`)[0]) {
		if _, err := client.DeleteObject(t.Context(),
			&sdk.DeleteObjectInput{Bucket: bucket, Key: aws.String(key)}); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "deleted", left(""), false)
}

func TestUninstallADirectory(t *testing.T) {
	parent := t.TempDir()
	creates(t, "file:"+parent+"/leases")
	child.Output(t, 0, exec.CommandContext(t.Context(), "rm", "-r",
		parent+"/"+filepath.Base(arguments(t, `rm -r (\S+)`)[0])))
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// The exporter can use the table without the functions, and then everything can be dropped.
func TestUninstallFromClickHouse(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	left := func() (names []string) {
		for _, row := range e.Rows(t, `SELECT name FROM system.functions
			WHERE origin = 'SQLUserDefined' UNION ALL
			SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name`) {
			names = append(names, row[0])
		}
		return names
	}
	check(t, "at first", left(), false)
	cmd := exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "clickhouse",
		"create")
	cmd.Env = append(os.Environ(), "TRACEFLAKE_CLICKHOUSE_DSN="+e.DSN())
	child.Output(t, 0, cmd)
	drop := func(script string) {
		for statement := range strings.SplitSeq(strings.TrimSpace(script), ";") {
			if statement != "" {
				e.Rows(t, statement)
			}
		}
	}
	drop(blocks(t, "sql")[1])
	e.Rows(t, `INSERT INTO otel_traces (Timestamp, TraceId) SELECT now(), lower(hex(1))`)
	check(t, "without the functions", left(), true)
	if rows := e.Rows(t, `SELECT count() FROM otel_traces_trace_id_ts`); rows[0][0] != "1" {
		t.Errorf("%s traces are in the lookup table, want 1", rows[0][0])
	}
	drop(blocks(t, "sql")[2])
	check(t, "dropped", left(), false)
}
