package setup_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/k8sstore"
	"github.com/traceflake/traceflake/lookup"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/sparx64"
	"github.com/traceflake/traceflake/traceid"
)

// No method of a zero value panics, and none waits. What sparx64's methods get is a block, since
// they panic without one as those of crypto/cipher do.
func TestZeroValues(t *testing.T) {
	quiet(t)
	values := []any{
		new(sparx64.Cipher), new(sparx64.KeySizeError),
		new(randflake.Codec), new(randflake.Generator), new(randflake.ID), new(randflake.Keyring), new(randflake.SystemClock), new(randflake.ClockFunc),
		new(idgen.Generator), new(traceid.Verifier), new(setup.IDs), new(setup.Config),
		new(lease.Keeper), new(driver.Memory), new(driver.Block), new(driver.NodeRange), new(pages.Busy),
		new(lookup.Transport), new(lookup.Backend),
		new(clickhouse.Schema), new(clickhouse.Query), new(clickhouse.Plan), new(clickhouse.Adoption),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	argument := map[reflect.Type]func() any{
		reflect.TypeFor[context.Context]():     func() any { return ctx },
		reflect.TypeFor[*http.Request]():       func() any { return httptest.NewRequest("GET", server.URL+"/api/traces/1", http.NoBody) },
		reflect.TypeFor[http.ResponseWriter](): func() any { return httptest.NewRecorder() },
		reflect.TypeFor[*sql.DB]():             func() any { return sql.OpenDB(noServer{}) },
		reflect.TypeFor[[]byte]():              func() any { return make([]byte, sparx64.BlockSize) },
		reflect.TypeFor[[]uint64]():            func() any { return make([]uint64, 1) },
		reflect.TypeFor[[]randflake.ID]():      func() any { return make([]randflake.ID, 3) },
	}
	tested := map[string]bool{}
	for _, v := range values {
		typ := reflect.TypeOf(v)
		tested[strings.TrimPrefix(typ.Elem().PkgPath(), "github.com/traceflake/traceflake/")+"."+typ.Elem().Name()] = true
		for i := range typ.NumMethod() {
			method := typ.Method(i)
			if method.Name == "Format" { // fmt calls it
				_ = fmt.Sprint(v)
				continue
			}
			args := []reflect.Value{reflect.New(typ.Elem())}
			for j := 1; j < method.Type.NumIn(); j++ {
				arg := reflect.Zero(method.Type.In(j))
				if f := argument[method.Type.In(j)]; f != nil {
					arg = reflect.ValueOf(f())
				}
				args = append(args, arg)
			}
			begun := time.Now()
			func() {
				defer func() {
					if problem := recover(); problem != nil {
						t.Errorf("%s.%s panics: %v", typ, method.Name, problem)
					}
				}()
				if method.Type.IsVariadic() {
					args = args[:len(args)-1]
				}
				method.Func.Call(args)
			}()
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("%s.%s took %s", typ, method.Name, d)
			}
		}
	}
	if want := typesWithMethods(t); !maps.Equal(tested, want) {
		t.Errorf("tested are\n%q, want\n%q", slices.Sorted(maps.Keys(tested)), slices.Sorted(maps.Keys(want)))
	}
}

// A nil option changes nothing, in any package.
func TestNilOptions(t *testing.T) {
	codec, err := randflake.NewCodec(make([]byte, sparx64.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	idgen.New(nil)
	traceid.NewVerifier(nil, nil)
	xtraceid.New(nil)
	request := httptest.NewRequest("GET", "/", http.NoBody)
	inTrace := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}})
	request = request.WithContext(trace.ContextWithSpanContext(t.Context(), inTrace))
	xtraceid.ResponseHandler(http.NotFoundHandler(), nil).ServeHTTP(httptest.NewRecorder(), request)
	_, generator := randflake.NewGenerator(codec, randflake.Lease{Nodes: 1, Start: time.Now(), End: time.Now().Add(time.Hour)}, nil)
	keeper, started := lease.Start(t.Context(), driver.NewMemory(nil), codec, nil)
	_, transport := lookup.New(lookup.Tempo, nil, lookup.WithTransport(nil), lookup.WithMeterProvider(nil))
	_, bolt := boltstore.New("leases.db", nil)
	_, k8s := k8sstore.New(http.DefaultClient, "https://127.0.0.1", "default", nil)
	if err := errors.Join(generator, started, transport, bolt, k8s); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Close(t.Context())
}

// noServer is a database that cannot be reached.
type noServer struct{}

func (noServer) Connect(context.Context) (sqldriver.Conn, error) { return nil, errAway }
func (noServer) Driver() sqldriver.Driver                        { return nil }

// typesWithMethods returns the exported types of the root module's packages for users that have
// exported methods.
func typesWithMethods(t *testing.T) map[string]bool {
	t.Helper()
	types := map[string]bool{}
	for _, folder := range []string{
		"sparx64", "randflake", "idgen", "traceid", "setup", "lookup", "clickhouse", "postgres", "propagation/xtraceid",
		"lease", "lease/driver", "lease/driver/pages", "lease/boltstore", "lease/k8sstore",
	} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || f.Recv == nil || !f.Name.IsExported() || strings.HasSuffix(name, "_test.go") {
					continue
				}
				typ := f.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if id, ok := typ.(*ast.Ident); ok && id.IsExported() {
					types[folder+"."+id.Name] = true
				}
			}
		}
	}
	return types
}
