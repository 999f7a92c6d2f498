package clickhouse_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// keeper starts Debian's ZooKeeper and returns its host and port.
func keeper(t *testing.T) (host, port string) {
	t.Helper()
	const jar = "/usr/share/java/zookeeper.jar"
	java, err := exec.LookPath("java")
	if _, err2 := os.Stat(jar); err != nil || err2 != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no ZooKeeper here: apt-get install zookeeper")
		}
		t.Skip("there is no ZooKeeper here: apt-get install zookeeper")
	}
	at, err := child.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ = net.SplitHostPort(at[0])
	config := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, "tickTime=500\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\nadmin.enableServer=false\n", t.TempDir(), port, host), 0o600); err != nil {
		t.Fatal(err)
	}
	server := child.New("ZooKeeper", func() *exec.Cmd {
		return exec.Command(java, "-Xmx128m", "-cp", jar+":/usr/share/java/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	})
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := child.Ready(ctx, func(context.Context) error {
		conn, err := net.Dial("tcp", at[0])
		if err == nil {
			_ = conn.Close()
		}
		return err
	}, server); err != nil {
		t.Fatal(err)
	}
	return host, port
}

// TestReplicatedTables creates the tables of a cluster in ZooKeeper. The engine
// of these tests cannot run ON CLUSTER, and its replicas stay read-only.
func TestReplicatedTables(t *testing.T) {
	const inChild = "TRACEFLAKE_REPLICATED"
	if os.Getenv(inChild) != "" {
		replicatedTables(t)
		return
	}
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
		t.Skip("for the embedded engine only")
	}
	host, port := keeper(t)
	config := filepath.Join(t.TempDir(), "config.xml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `<clickhouse>
<zookeeper><node><host>%s</host><port>%s</port></node></zookeeper>
<macros><shard>1</shard><replica>r1</replica></macros>
<default_replica_path>/clickhouse/tables/{database}/{table}/{shard}</default_replica_path>
<default_replica_name>{replica}</default_replica_name>
<remote_servers><c><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard></c></remote_servers>
</clickhouse>`, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	// One engine a process, and this one has been configured.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestReplicatedTables$", "-test.v")
	cmd.Env = append(os.Environ(), inChild+"=yes", configVar+"="+config)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestReplicatedTables") {
		t.Errorf("%v\n%s", err, out)
	}
}

func replicatedTables(t *testing.T) {
	e := newEngine(t)
	here := regexp.MustCompile(" ON CLUSTER `c`")
	for name, s := range map[string]clickhouse.Schema{"spans": {Table: "spans", Cluster: "c", TTL: time.Hour}, "trace": {Table: "trace", Layout: clickhouse.TraceFirst, Cluster: "c"},
		"lookup": {Table: "lookup", Cluster: "c", KeepLookup: true}} {
		statements, err := s.Statements()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time the guards see what the first has made
			for _, statement := range statements {
				e.exec(here.ReplaceAllString(statement, ""))
			}
		}
		e.is("/clickhouse/tables/"+e.Database()+"/"+name+"_local/1 r1", "SELECT zookeeper_path || ' ' || replica_name FROM system.replicas WHERE table = '"+name+"_local'")
		engines := "[Distributed ReplicatedMergeTree View View]"
		if s.KeepLookup {
			engines = "[Distributed ReplicatedMergeTree Distributed ReplicatedMergeTree MaterializedView]"
		}
		if got := fmt.Sprint(e.column("SELECT engine FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '" + name + "') ORDER BY name")); got != engines {
			t.Errorf("%s: engines %s", name, got)
		}
	}

	// The new table of an adoption has the server's default path in Keeper, whatever that of the old one.
	create, _, _ := strings.Cut(collectorTable("old")[0], "MergeTree()")
	e.exec(create + "ReplicatedMergeTree('/somewhere/{shard}', '{replica}') ORDER BY (ServiceName, Timestamp)")
	for _, operation := range []string{"prepare", "swap", "undo", "swap"} {
		if _, err := adopt(t.Context(), clickhouse.Adoption{Table: "old"}, operation, e.db); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
	}
	e.is("/clickhouse/tables/"+e.Database()+"/old_other/1 r1", "SELECT zookeeper_path || ' ' || replica_name FROM system.replicas WHERE table = 'old'")
}
